// expect: checkpoint_of_a_value.cpp:11: checkpoint: transforms a function, and is given a
// expect: value: write the function first
// expect-lines: 30
// A value is to be computed again.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>

using namespace cella;

struct Net {
  constexpr var operator()(var x) const { return checkpoint(relu(x))(x); }
};
int main() {
  auto run = compile<tensor<dtype::f32, 8>>(Net{});
  run(std::vector<float>(8));
}
