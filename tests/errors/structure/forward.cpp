// expect: Net: has no public call operator that takes vars; write constexpr var operator()(var x)
// expect: const
// expect-lines: 20
// A cell has another function in place of its call operator.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var forward(var x) const { return fc(x); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
