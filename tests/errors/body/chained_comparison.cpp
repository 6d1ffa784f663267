// expect: chained_comparison.cpp:14: less: less result is bool[32,10], and truth values are
// expect: not compared with a number; write logical_and(a < x, x < b) for a < x < b
// expect-lines: 25
// Comparisons are chained.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return select(0 < x < 1, x, 0); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
