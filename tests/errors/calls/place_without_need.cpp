// expect: only a program with_bound_results can be told where its results go:
// expect: executable<with_bound_results<P>>
// expect-lines: 40
// A program is told where to write its result, which has a place already.
#include <cella/nn.hpp>
#include <cella/run.hpp>

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
  std::vector<float> y(320);
  run.bind<0>(y);
}
