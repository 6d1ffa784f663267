// expect-gcc: standard_sine.cpp:18:58: error: no matching function for call to
// expect-gcc: 'sin(cella::var)'
// expect-clang: standard_sine.cpp:18:50: error: no matching function for call to 'sin'
// expect-lines: 83
// expect-errors: 3
// expect-place: library
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
