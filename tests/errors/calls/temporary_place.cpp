// expect: the place of result 0 is gone before the first call; hand over memory that outlives the calls
// expect-lines: 20
// A result is bound to a vector that does not live on.
#include <cella/nn.hpp>
#include <cella/runtime/executable.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

using Program = with_bound_results<inference_program<Net, tensor<dtype::f32, 32, 10>>>;

int main() {
  Net net;
  parameter_store store(net, 1);
  executable<Program> run(store);
  run.bind(std::vector<float>(320));
}
