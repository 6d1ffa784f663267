// expect: diagonal_of_a_rectangle.cpp:12: einsum: a letter stands for the axes 0 and 1 of
// expect: x [8,4], whose diagonal needs equal extents
// expect-lines: 30
// einsum takes the diagonal of a rectangle.
#include <cella/nn.hpp>
#include <cella/ops/einsum.hpp>
#include <cella/runtime/compile.hpp>

using namespace cella;

struct Net {
  constexpr var operator()(var x) const { return einsum("ii->i", {x}); }
};
int main() {
  auto run = compile<tensor<dtype::f32, 8, 4>>(Net{});
  run(std::vector<float>(32));
}
