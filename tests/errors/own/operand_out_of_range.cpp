// expect: operand_out_of_range.cpp:19: cube: a rule asks for operand 1 of 1, which are
// expect: counted from 0
// expect-lines: 24
// A rule asks for an operand that there is not.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>

using namespace cella;

struct cube_op : elementwise<cube_op> {
  static constexpr std::string_view name = "cube";
  static constexpr auto apply(auto x) { return x * x * x; }
  static constexpr var partial(node_ref n, int) { return 3 * n.operand(1) * n.operand(0); }
};
constexpr var cube(operand x) { return emit<cube_op>({}, x.at(), x.in(*x.owner())); }

struct Net {
  constexpr var operator()(var x) const {
    return grad([](var v) { return sum(cube(v)); })(x);
  }
};
int main() {
  auto run = compile<tensor<dtype::f32, 8>>(Net{});
  run(std::vector<float>(8));
}
