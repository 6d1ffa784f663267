// expect: ternary.cpp:15: if: the condition greater result is bool[32,10]; it must be one bool
// expect: (compare with >, equal, ...; any() or all() make one of many; select() and
// expect: logical_and() go element by element)
// expect-lines: 25
// A native choice asks many elements.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return x > 0 ? x : x * 0.1; }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
