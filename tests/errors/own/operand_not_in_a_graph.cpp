// expect: cube: operand 0 is cella::operand, but emit takes vars; an operand x is made one
// expect: by x.in(*x.owner())
// expect-lines: 110
// expect-errors: 2
// An operand is not made a var.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>

using namespace cella;

struct cube_op : elementwise<cube_op> {
  static constexpr std::string_view name = "cube";
  static constexpr auto apply(auto x) { return x * x * x; }
  static constexpr var partial(node_ref n, int) { return 3 * n.operand(0) * n.operand(0); }
};
constexpr var cube(operand x) { return emit<cube_op>({}, x.at(), x); }

struct Net {
  constexpr var operator()(var x) const { return cube(x); }
};
int main() {
  auto run = compile<tensor<dtype::f32, 8>>(Net{});
  run(std::vector<float>(8));
}
