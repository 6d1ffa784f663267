// expect-gcc: namespace_of_functions.cpp:17:54: error: 'relu' is not a member of 'cella::nn';
// expect-gcc: did you mean 'cella::relu'?
// expect-clang: namespace_of_functions.cpp:17:50: error: no member named 'relu' in namespace
// expect-clang: 'cella::nn'; did you mean simply 'relu'?
// expect-lines: 36
// expect-errors: 2
// A function is looked for among the layers.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return nn::relu(fc(x)); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
