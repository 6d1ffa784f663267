// expect: choice.cpp:15: if: the condition greater result is bool[32,10]; it must be one bool
// expect: (compare with >, equal, ...; any() or all() make one of many; select() and logical_and()
// expect: go element by element)
// expect-lines: 20
// A native choice compares many elements.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return x > 0 ? x : fc(x); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
