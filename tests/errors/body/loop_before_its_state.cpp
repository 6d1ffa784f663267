// expect: loop_before_its_state.cpp:16: for_i: takes a count, a function of the place and the state
// expect: that returns a state, then the first state: for_i(3, [](var i, var s) { return s + 1; },
// expect: x)
// expect-lines: 19
// The state of a loop stands before its body.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    return for_i(3, x, [](var, var s) { return s * 2; });
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
