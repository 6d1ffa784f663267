// expect-gcc: weight_assigned.cpp:17:17: error: no match for 'operator=' (operand types are
// expect-gcc: 'const cella::parameter<10, 10>' and 'cella::var')
// expect-clang: weight_assigned.cpp:17:15: error: no viable overloaded '='
// expect-lines: 36
// expect-errors: 2
// A weight is assigned in the call operator.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    fc.weight = x;
    return fc(x);
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
