// expect: cond_of_vars.cpp:14: cond: takes a bool, two functions, and what both are called with;
// expect: they return a var, or the same struct: cond(p, [&] { return x; }, [&] { return -x; })
// expect-lines: 19
// A branch is given vars and not functions.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return cond(mean(x) > 0, fc(x), -x); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
