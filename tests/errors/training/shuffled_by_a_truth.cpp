// expect: shuffle takes the seed of its order, a number: shuffle(1)
// expect-lines: 30
// Data are told that they are shuffled, and not how.
#include <cella/data.hpp>

using namespace cella;

int main() {
  const data::tensor_dataset numbers(data::column<float>({4}, {1, 2, 3, 4}));
  for (auto& b : numbers.shuffle(true).batch(2).epoch(0)) (void)b;
}
