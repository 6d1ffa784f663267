// expect: gradient_of_a_var.cpp:14: grad: transforms a function, and is given a value: write
// expect: the function first
// expect-lines: 39
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
