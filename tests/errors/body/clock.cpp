// expect-gcc: clock.cpp:18:69: error: call to non-'constexpr' function 'time_t time(time_t*)'
// expect-clang: clock.cpp:18:17: fatal error: constexpr function never produces a constant
// expect-clang: expression [-Winvalid-constexpr]
// expect-lines: 52
// expect-errors: 2
// expect-place: library
// A call operator asks the clock.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <ctime>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return x * float(std::time(nullptr)); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
