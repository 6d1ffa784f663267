// expect: cube: apply is one generic function, of numbers and vectors: static constexpr
// expect: auto apply(auto x)
// expect-lines: 110
// expect-errors: 2
// An operation is computed of floats only.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>

using namespace cella;

struct cube_op : elementwise<cube_op> {
  static constexpr std::string_view name = "cube";
  static constexpr float apply(float x) { return x * x * x; }
  static constexpr var partial(node_ref n, int) { return 3 * n.operand(0) * n.operand(0); }
};
constexpr var cube(operand x) { return emit<cube_op>({}, x.at(), x.in(*x.owner())); }

struct Net {
  constexpr var operator()(var x) const { return cube(x); }
};
int main() {
  auto run = compile<tensor<dtype::f32, 8>>(Net{});
  run(std::vector<float>(8));
}
