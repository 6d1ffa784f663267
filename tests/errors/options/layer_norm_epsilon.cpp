// expect: layer_norm_epsilon.cpp:13: layer_norm: epsilon is -1; it must not be negative
// expect-lines: 12
// The epsilon of a layer norm is negative.
#include <cella/nn.hpp>
#include <cella/runtime/executable.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::layer_norm<16> ln{.epsilon = -1};

  constexpr var operator()(var x) const { return ln(x); }
};

using Program = inference_program<Net, tensor<dtype::f32, 8, 3, 16, 16>>;

int main() {
  Net net;
  parameter_store store(net, 1);
  executable<Program> run(store);
  const std::vector<float> x(std::size_t(tensor<dtype::f32, 8, 3, 16, 16>::type.size()));
  run(x);
  return int(run.result()[0]);
}
