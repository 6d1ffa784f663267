// expect: say which epoch's batches: for (auto& b : batches.epoch(0))
// expect-lines: 30
// Batches are looped over without an epoch.
#include <cella/data.hpp>

using namespace cella;

int main() {
  const data::tensor_dataset numbers(data::column<float>({4}, {1, 2, 3, 4}));
  for (auto& b : numbers.batch(2)) (void)b;
}
