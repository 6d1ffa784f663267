// expect-gcc: global_variable.cpp:20:62: error: the value of 'factor' is not usable in a
// expect-gcc: constant expression
// expect-clang: global_variable.cpp:20:17: fatal error: constexpr function never produces a
// expect-clang: constant expression [-Winvalid-constexpr]
// expect-lines: 40
// expect-errors: 2
// expect-place: library
// A global variable is read that is not constexpr.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

float factor = 2;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return x * factor; }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
