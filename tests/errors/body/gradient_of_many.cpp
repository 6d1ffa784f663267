// expect: gradient_of_many.cpp:15: grad: the function returns f32[32,10]; a gradient needs one
// expect: floating-point number (sum or mean it, or use vjp)
// expect-lines: 20
// grad is asked for the gradient of many numbers.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    return grad([](var y) { return y * 2; })(x);
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
