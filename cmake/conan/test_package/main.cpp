#include <array>
#include <cella/ops/elementwise.hpp>
#include <cella/runtime/compile.hpp>

int main() {
  const auto square_plus_one = [](cella::var x) { return x * x + 1; };
  auto run = cella::compile<cella::tensor<cella::dtype::f32, 3>>(square_plus_one);
  const std::array<float, 3> x{1, 2, 3};
  return run(x)[2] == 10 ? 0 : 1;
}
