// expect: operands_of_other_shapes.cpp:18: blend: x is f32[8], y is f32[3]; an elementwise
// expect: operation takes operands of one type (broadcast_to, cast)
// expect-lines: 24
// Operands are not broadcast.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>

using namespace cella;

struct blend_op : elementwise<blend_op> {
  static constexpr std::string_view name = "blend";
  static constexpr auto apply(auto x, auto y) { return x * y; }
  static constexpr var partial(node_ref n, int i) { return n.operand(1 - i); }
};

struct Net {
  constexpr var operator()(var x, var y) const {
    return emit<blend_op>({}, std::source_location::current(), x, y);
  }
};
int main() {
  auto run = compile<tensor<dtype::f32, 8>, tensor<dtype::f32, 3>>(Net{});
  run(std::vector<float>(8), std::vector<float>(3));
}
