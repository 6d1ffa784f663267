// expect: functions of the standard library take numbers; leave std:: out, Cella's take a var
// expect-lines: 26
// A function of the standard library is called with a var.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <cmath>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return std::sin(fc(x)); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
