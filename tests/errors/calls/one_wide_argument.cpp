// expect: one_wide_argument.cpp:14: matmul: element types differ: x is f32[32,10], fc.weight is
// expect: f64[10,10]; convert one with cast()
// expect-lines: 20
// One argument is f64, so that parameters are.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x, var y) const { return fc(x) + cast(y, dtype::f32); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>, tensor<dtype::f64, 32, 10>>(Net{});
  return int(run(std::vector<float>(320), std::vector<double>(320))[0]);
}
