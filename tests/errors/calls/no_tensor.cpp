// expect: compile: float is no tensor; write tensor<dtype::f32, 32, 10> and the like
// expect-lines: 28
// compile is told a number type.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

int main() {
  auto run = compile<float>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
