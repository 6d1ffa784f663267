// expect: Net: returns void; a cell returns a var, or an array, tuple or struct of vars
// expect-lines: 20
// A call operator returns nothing.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  constexpr void operator()(var x) const { relu(x); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
