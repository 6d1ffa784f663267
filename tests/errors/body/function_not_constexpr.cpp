// expect-gcc: function_not_constexpr.cpp:20:55: error: call to non-'constexpr' function
// expect-gcc: 'cella::var twice(cella::var)'
// expect-clang: function_not_constexpr.cpp:20:50: note: non-constexpr function 'twice' cannot
// expect-clang: be used in a constant expression
// expect-lines: 87
// expect-errors: 2
// expect-place: library
// A function is called that is not constexpr.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

inline var twice(var x) { return x * 2; }

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return twice(x); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
