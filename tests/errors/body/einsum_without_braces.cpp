// expect: write the operands in braces: einsum("ij,jk->ik", {x, y})
// expect-lines: 60
// expect-errors: 2
// The operands of einsum are not in braces.
#include <cella/nn.hpp>
#include <cella/ops/einsum.hpp>
#include <cella/runtime/compile.hpp>

using namespace cella;

struct Net {
  constexpr var operator()(var x, var y) const { return einsum("ij,jk->ik", x, y); }
};
int main() {
  auto run = compile<tensor<dtype::f32, 8, 4>, tensor<dtype::f32, 4, 3>>(Net{});
  run(std::vector<float>(32), std::vector<float>(12));
}
