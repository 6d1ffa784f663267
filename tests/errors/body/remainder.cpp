// expect-gcc: remainder.cpp:17:54: error: 'constexpr
// expect-gcc: cella::detail::no_remainder::no_remainder(const cella::var&)' is unavailable:
// expect-gcc: write mod(x, y), which goes element by element
// expect-clang: remainder.cpp:17:50: error: 'no_remainder' is unavailable: write mod(x, y),
// expect-clang: which goes element by element
// expect-lines: 24
// A remainder is taken by an operator.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return x % 2; }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
