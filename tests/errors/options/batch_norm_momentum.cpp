// expect: batch_norm_momentum.cpp:14: batch_norm: epsilon is 1e-5 and momentum 1.5; epsilon must
// expect: not be negative, and momentum must lie in [0, 1]
// expect-lines: 12
// The momentum of a batch norm is above 1.
#include <cella/nn.hpp>
#include <cella/runtime/executable.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::batch_norm<3> bn{.momentum = 1.5};

  constexpr var operator()(var x) const { return bn(x); }
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
