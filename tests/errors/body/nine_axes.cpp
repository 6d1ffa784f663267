// expect: a_tensor_has_at_most_8_axes()
// expect-lines: 75
// A shape has nine axes.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return reshape(x, {1, 1, 1, 1, 1, 1, 1, 32, 10}); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
