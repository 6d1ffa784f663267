// expect-gcc: axis_as_a_number.cpp:16:57: error: invalid initialization of reference of type
// expect-gcc: 'const cella::axis_list&' from expression of type 'int'
// expect-clang: axis_as_a_number.cpp:16:50: error: no matching function for call to 'sum'
// expect-lines: 40
// expect-errors: 2
// An axis is given without braces.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return sum(x, 1); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
