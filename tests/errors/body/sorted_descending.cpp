// expect: write the axis, then the order: sort(x, -1, true)
// expect-lines: 60
// Only the order is told to sort.
#include <cella/nn.hpp>
#include <cella/ops/sorting.hpp>
#include <cella/runtime/compile.hpp>

using namespace cella;

struct Net {
  constexpr var operator()(var x) const { return sort(x, true); }
};
int main() {
  auto run = compile<tensor<dtype::f32, 8>>(Net{});
  run(std::vector<float>(8));
}
