// expect: negative_stride.cpp:12: max_pool: window and stride must be positive: x is [8,3,16,16],
// expect: window [2,2]
// expect-lines: 12
// The stride of a pooling is negative.
#include <cella/nn.hpp>
#include <cella/runtime/executable.hpp>
#include <vector>

using namespace cella;

struct Net {
  constexpr var operator()(var x) const { return max_pool(x, 2, -1); }
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
