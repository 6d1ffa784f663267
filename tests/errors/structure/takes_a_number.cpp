// expect: Net: its call operator takes something other than vars; it has to be constexpr var
// expect: operator()(var x) const
// expect-lines: 20
// A call operator takes a number.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  constexpr var operator()(float) const { return var{}; }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
