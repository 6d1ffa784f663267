// expect: conv.weight is f32[4,3,0,0]; the extents of parameters and states must be positive
// expect-lines: 12
// The filter of a convolution has no extent.
#include <cella/nn.hpp>
#include <cella/runtime/executable.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::conv2d<3, 4, 0> conv;

  constexpr var operator()(var x) const { return conv(x); }
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
