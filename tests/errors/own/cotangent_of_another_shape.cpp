// expect: cotangent_of_another_shape.cpp:27: mirror: the cotangent of operand 0, identity
// expect: result f32[8], becomes f32[]; it has the operand's type
// expect-lines: 24
// A rule makes a cotangent of another shape.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>

using namespace cella;

struct mirror_op : opaque<mirror_op> {
  static constexpr std::string_view name = "mirror";
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return in[0];
  }
  static constexpr void vjp(node_ref, span<const var> dy, span<const char>, span<var> dx) {
    dx[0] = sum(dy[0]);
  }
  static void compute(const attributes&, span<const tensor_ref> in, span<const tensor_ref> out) {
    const std::int64_t n = in[0].type.size();
    for (std::int64_t i = 0; i < n; ++i) write_element(out[0], n - 1 - i, read_element(in[0], i));
  }
};
constexpr var mirror(operand x) { return emit<mirror_op>({}, x.at(), x.in(*x.owner())); }

struct Net {
  constexpr var operator()(var x) const {
    return grad([](var v) { return sum(mirror(v)); })(x);
  }
};
int main() {
  auto run = compile<tensor<dtype::f32, 8>>(Net{});
  run(std::vector<float>(8));
}
