// expect: vmap goes along the leading axes of its arguments: vmap(f)(move_axis(x, 1, 0))
// expect-lines: 40
// vmap is told an axis.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>

using namespace cella;

struct Net {
  constexpr var operator()(var x) const {
    return vmap([](var v) { return sum(v); }, 1)(x);
  }
};
int main() {
  auto run = compile<tensor<dtype::f32, 8, 3>>(Net{});
  run(std::vector<float>(24));
}
