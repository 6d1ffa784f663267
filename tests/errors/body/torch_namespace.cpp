// expect-gcc: torch_namespace.cpp:15:50: error: 'torch' has not been declared
// expect-clang: torch_namespace.cpp:15:50: error: use of undeclared identifier 'torch'
// expect-lines: 31
// expect-errors: 3
// A function is called as in libtorch.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return torch::relu(fc(x)); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
