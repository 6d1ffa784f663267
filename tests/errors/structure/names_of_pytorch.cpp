// expect-gcc: names_of_pytorch.cpp:15:7: error: 'Conv2d' in namespace 'cella::nn' does not
// expect-gcc: name a template type; did you mean 'conv2d'?
// expect-clang: names_of_pytorch.cpp:15:7: error: no template named 'Conv2d' in namespace
// expect-clang: 'cella::nn'; did you mean 'conv2d'?
// expect-lines: 35
// expect-errors: 3
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
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
