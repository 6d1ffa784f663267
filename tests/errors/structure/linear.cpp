// expect: write nn::dense<In, Out>
// expect-lines: 10
// A layer has the name that it has in PyTorch.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::linear<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
