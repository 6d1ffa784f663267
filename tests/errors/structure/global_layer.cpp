// expect-gcc: global_layer.cpp:18:49: error: the value of 'fc' is not usable in a constant
// expect-gcc: expression
// expect-clang: global_layer.cpp:12:19: note: declared here
// expect-lines: 73
// A layer is a global variable.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

nn::dense<10, 10> fc;
struct Net {
  constexpr var operator()(var x) const { return fc(x); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
