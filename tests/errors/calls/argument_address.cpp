// expect: argument 1 (x) is float*, an address, which does not say how many elements there are; hand
// expect: over a vector, an array or a span, or call call_unchecked
// expect-lines: 20
// An executable is called with an address.
#include <cella/nn.hpp>
#include <cella/runtime/executable.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Program = inference_program<Net, tensor<dtype::f32, 32, 10>>;

int main() {
  Net net;
  parameter_store store(net, 1);
  executable<Program> run(store);
  std::vector<float> x(320);
  run(x.data());
}
