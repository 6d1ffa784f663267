// expect: cube_op: it has no name: static constexpr std::string_view name =
// expect-lines: 110
// expect-errors: 2
// An operation has no name.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>

using namespace cella;

struct cube_op : elementwise<cube_op> {
  static constexpr auto apply(auto x) { return x * x * x; }
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
