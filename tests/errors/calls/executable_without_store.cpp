// expect: an executable is made of a parameter_store, which has the net's parameters and
// expect: outlives it: parameter_store store(net, 1); executable<Program> run(store)
// expect-lines: 30
// An executable is made without parameters.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};
using Program = inference_program<Net, tensor<dtype::f32, 32, 10>>;

int main() {
  executable<Program> run;
  run(std::vector<float>(320));
}
