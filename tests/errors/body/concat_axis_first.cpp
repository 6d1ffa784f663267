// expect: write the axis behind the tensors: concat({x, y}, 1)
// expect-lines: 20
// The axis of a concatenation stands in front.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return concat(1, {x, fc(x)}); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
