// expect-gcc: bitwise_and.cpp:17:73: error: 'constexpr
// expect-gcc: cella::detail::no_bitwise_and::no_bitwise_and(const cella::var&)' is
// expect-gcc: unavailable: write logical_and(x, y), which goes element by element
// expect-clang: bitwise_and.cpp:17:57: error: 'no_bitwise_and' is unavailable: write
// expect-clang: logical_and(x, y), which goes element by element
// expect-lines: 24
// Conditions are joined by a bitwise operator.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return select((x > 0) & (x < 1), x, 0); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
