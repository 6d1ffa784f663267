// expect: scale: double in the place of the options; emit takes {} or the struct called
// expect: options, the place, and the operands: emit<Op>({}, x.at(), v)
// expect-lines: 110
// expect-errors: 2
// The options of an operation are given as a number.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>

using namespace cella;

struct scale_op : elementwise<scale_op> {
  static constexpr std::string_view name = "scale";
  struct options {
    double by{};
  };
  static constexpr auto apply(options o, auto x) { return x * like(x, o.by); }
  static constexpr var partial(node_ref n, int) {
    return full_like(n.output(), n.as<options>().by);
  }
};
constexpr var scale(operand x, double by) { return emit<scale_op>(by, x.at(), x.in(*x.owner())); }

struct Net {
  constexpr var operator()(var x) const { return scale(x, 2); }
};
int main() {
  auto run = compile<tensor<dtype::f32, 8>>(Net{});
  run(std::vector<float>(8));
}
