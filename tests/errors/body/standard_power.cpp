// expect: functions of the standard library take numbers; leave std:: out, Cella's take a var
// expect-lines: 20
// A power is that of the standard library.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <cmath>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(std::pow(x, 2)); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
