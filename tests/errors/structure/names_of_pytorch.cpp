// expect: write nn::conv2d<In, Out, Kernel>
// expect-lines: 26
// A layer is called as in PyTorch.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::Conv2d<1, 8, 5> conv;

  constexpr var operator()(var x) const { return conv(x); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 4, 1, 8, 8>>(Net{});
  return int(run(std::vector<float>(256))[0]);
}
