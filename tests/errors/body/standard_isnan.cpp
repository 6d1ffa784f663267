// expect: write is_nan(x), is_inf(x) or is_finite(x)
// expect-lines: 20
// Whether a number is none is asked of the standard library.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <cmath>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return select(std::isnan(x), 0, x); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
