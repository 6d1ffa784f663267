// expect: vmap_called_at_once.cpp:12: vmap: yields a function, which takes the values:
// expect: vmap(f)(x)
// expect-lines: 30
// vmap is given the function and its argument.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>

using namespace cella;

struct Net {
  constexpr var operator()(var x) const {
    return vmap([](var v) { return sum(v); }, x);
  }
};
int main() {
  auto run = compile<tensor<dtype::f32, 8, 3>>(Net{});
  run(std::vector<float>(24));
}
