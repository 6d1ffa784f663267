// expect: write maximum(x, y), minimum(x, y), mod(x, y) or abs(x)
// expect-lines: 20
// The larger number is asked of the standard library.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <cmath>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(std::fmax(x, 0.0)); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
