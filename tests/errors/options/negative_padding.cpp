// expect: negative_padding.cpp:14: conv2d: padding must not be negative (slice() cuts an image): x
// expect: is f32[8,3,16,16], conv.weight is f32[4,3,3,3]
// expect-lines: 12
// The padding of a convolution is negative.
#include <cella/nn.hpp>
#include <cella/runtime/executable.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::conv2d<3, 4, 3> conv{.padding = -1};

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
