// expect-gcc: ternary_of_types.cpp:17:61: error: operands to '?:' have different types
// expect-gcc: 'cella::var' and 'int'
// expect-clang: ternary_of_types.cpp:17:61: error: incompatible operand types ('var' and
// expect-clang: 'int')
// expect-lines: 30
// expect-errors: 2
// The sides of a native choice have different types.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return sum(x) > 0 ? x : 0; }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
