// expect: no_stride.cpp:14: conv2d: stride and dilation must be positive: x is f32[8,3,16,16],
// expect: conv.weight is f32[4,3,3,3]
// expect-lines: 12
// The stride of a convolution is 0.
#include <cella/nn.hpp>
#include <cella/runtime/executable.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::conv2d<3, 4, 3> conv{.stride = 0};

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
