// expect: no_groups.cpp:14: conv2d: the groups do not divide the filters: x is
// expect: f32[8,3,28,28], conv.weight is f32[8,3,3,3]
// expect-lines: 19
// A convolution has no groups.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::conv2d<3, 8, 3, true, 0> conv;

  constexpr var operator()(var x) const { return conv(x); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 8, 3, 28, 28>>(Net{});
  return int(run(std::vector<float>(8 * 3 * 28 * 28))[0]);
}
