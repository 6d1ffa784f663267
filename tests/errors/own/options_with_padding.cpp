// expect: options have no padding; put doubles first, and fill up with an int32_t
// expect-lines: 110
// expect-errors: 2
// The options of an operation have padding.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>

using namespace cella;

struct scale_op : elementwise<scale_op> {
  static constexpr std::string_view name = "scale";
  struct options {
    double by{};
    std::int32_t times{};
  };
  static constexpr auto apply(options o, auto x) { return x * like(x, o.by); }
  static constexpr var partial(node_ref n, int) {
    return full_like(n.output(), n.as<options>().by);
  }
};
constexpr var scale(operand x, double by) {
  return emit<scale_op>(scale_op::options{by, 1}, x.at(), x.in(*x.owner()));
}

struct Net {
  constexpr var operator()(var x) const { return scale(x, 2); }
};
int main() {
  auto run = compile<tensor<dtype::f32, 8>>(Net{});
  run(std::vector<float>(8));
}
