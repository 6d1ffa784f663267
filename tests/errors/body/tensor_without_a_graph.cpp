// expect: let a var or parameter of the net stand first: zeros(x, {2, 3}), arange(x, 8)
// expect-lines: 60
// A tensor is made of a shape alone, in no graph.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>

using namespace cella;

struct Net {
  constexpr var operator()(var x) const { return x + arange(8); }
};
int main() {
  auto run = compile<tensor<dtype::f32, 8>>(Net{});
  run(std::vector<float>(8));
}
