// expect: counted_by_a_var.cpp:16: if: the condition less result is bool[32]; it must be one
// expect: bool (compare with >, equal, ...; any() or all() make one of many; select() and
// expect: logical_and() go element by element)
// expect-lines: 25
// A native loop counts to a var.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    for (int i = 0; i < argmax(x, 1); ++i) x = fc(x);
    return x;
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
