// expect: gradient_of_two.cpp:16: grad: the function does not take 1 tensor, with which it is
// expect: called
// expect-lines: 20
// grad is given fewer arguments than its function takes.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <cella/transform/gradient.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    return grad([](var a, var b) { return sum(a * b); })(x);
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
