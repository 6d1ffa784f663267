// expect-gcc: throws_in_a_program.cpp:18:28: error: expression '<throw-expression>' is not a
// expect-gcc: constant expression
// expect-clang: throws_in_a_program.cpp:18:28: note: subexpression not valid in a constant
// expect-clang: expression
// expect-lines: 80
// A program's cell throws.
#include <cella/nn.hpp>
#include <cella/runtime/executable.hpp>
#include <stdexcept>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    if (x.extent(1) != 11) throw std::runtime_error("wrong");
    return fc(x);
  }
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
