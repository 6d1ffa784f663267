// expect-gcc: endless_recursion.cpp:20:49: error: 'constexpr' evaluation depth exceeds maximum of
// expect-gcc: 512
// expect-clang: constexpr evaluation exceeded maximum depth of 512 calls
// expect-lines: 520
// A function calls itself without end.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

constexpr var again(var x) { return again(relu(x)); }
struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return again(x); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
