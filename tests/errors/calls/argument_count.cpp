// expect: the program takes 1 argument: f32[32,10]; 2 are handed over
// expect-lines: 20
// A compiled function is called with too many arguments.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  run(std::vector<float>(320), std::vector<float>(320));
}
