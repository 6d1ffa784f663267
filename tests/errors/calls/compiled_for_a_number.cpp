// expect: compile: float is no tensor; write tensor<dtype::f32, 32, 10> and the like
// A compiled function is held, of a number instead of a tensor.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

int main() {
  compiled<Net, float> run;
  return int(run(std::array<float, 320>{})[0]);
}
