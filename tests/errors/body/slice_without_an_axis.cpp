// expect: write the axis, then from where to where: slice(x, 0, 1, 3)
// expect-lines: 60
// A slice is taken without an axis.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>

using namespace cella;

struct Net {
  constexpr var operator()(var x) const { return slice(x, 1, 3); }
};
int main() {
  auto run = compile<tensor<dtype::f32, 8>>(Net{});
  run(std::vector<float>(8));
}
