// expect-gcc: gradient_of_a_var.cpp:16:54: error: no matching function for call to
// expect-gcc: 'grad(cella::var, cella::var&)'
// expect-clang: gradient_of_a_var.cpp:16:50: error: no matching function for call to 'grad'
// expect-lines: 39
// expect-errors: 2
// grad is given a var and not a function.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return grad(sum(fc(x)), x); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
