// expect: map_to: the function takes a sample and the new one, f(from, to), of which it writes all
// expect: columns
// expect-lines: 40
// New columns are returned instead of written.
#include <cella/data.hpp>

using namespace cella;

int main() {
  const data::tensor_dataset numbers(data::column<float>({4}, {1, 2, 3, 4}));
  const auto doubled = numbers.map_to<float>(
      {shape{}}, [](const auto& from) { return 2 * from.template column<0>()[0]; });
}
