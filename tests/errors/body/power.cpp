// expect-gcc: power.cpp:17:54: error: 'constexpr
// expect-gcc: cella::detail::no_bitwise_xor::no_bitwise_xor(const cella::var&)' is
// expect-gcc: unavailable: write pow(x, y), or logical_xor(x, y) of conditions
// expect-clang: power.cpp:17:50: error: 'no_bitwise_xor' is unavailable: write pow(x, y), or
// expect-clang: logical_xor(x, y) of conditions
// expect-lines: 24
// A power is written with ^.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return x ^ 2; }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
