// expect: e.weight is f32[0,16]; the extents of parameters and states must be positive
// expect-lines: 12
// An embedding has no rows.
#include <cella/nn.hpp>
#include <cella/runtime/executable.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::embedding<0, 16> e;

  constexpr var operator()(var x) const { return e(x); }
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
