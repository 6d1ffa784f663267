// expect: fc.weight is f32[0,10]; the extents of parameters and states must be positive
// expect-lines: 12
// A layer makes no features.
#include <cella/nn.hpp>
#include <cella/runtime/executable.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 0> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Program = inference_program<Net, tensor<dtype::f32, 32, 10>>;

int main() {
  Net net;
  parameter_store store(net, 1);
  executable<Program> run(store);
  const std::vector<float> x(std::size_t(tensor<dtype::f32, 32, 10>::type.size()));
  run(x);
  return int(run.result()[0]);
}
