#include "nets.hpp"

namespace cella::benchmark {

namespace {
template <int Width, int Hidden>
using dense_pair = chain<nn::dense<Width, Hidden>, nn::dense<Hidden, Width>>;

/// The same of an input that is stored in 16 bits, as are the operands of all products; weights and
/// their gradients are of single precision.
template <dtype Stored, int Width, int Hidden>
struct narrow_pair {
  parameter<Hidden, Width> first{initializer::fan_in_uniform(Width)};
  parameter<Width, Hidden> second{initializer::fan_in_uniform(Hidden)};
  constexpr var operator()(var x) const {
    const var h = matmul(x, cast(first, Stored), false, true);
    return cast(matmul(h, cast(second, Stored), false, true), dtype::f32);
  }
};
}  // namespace

std::span<const kernel_case> products() {
  static constexpr std::array cases{
      trained<dense_pair<1024, 1024>, tensor<dtype::f32, 128, 1024>>(
          "product", "128 x 1024 x 1024 (mlp128_wide)"),
      trained<dense_pair<256, 1024>, tensor<dtype::f32, 1024, 256>>("product",
                                                                    "1024 x 256 x 1024 (gpt_8)"),
      trained<dense_pair<784, 128>, tensor<dtype::f32, 32, 784>>("product",
                                                                 "32 x 784 x 128 (mlp32)"),
      predicted<dense_pair<784, 128>, tensor<dtype::f32, 1, 784>>("product",
                                                                  "1 x 784 x 128 (mlp1_infer)"),
      trained<dense_pair<1024, 1024>, tensor<dtype::f64, 128, 1024>, dtype::f64>(
          "product", "128 x 1024 x 1024, f64"),
      trained<narrow_pair<dtype::bf16, 1024, 1024>, tensor<dtype::bf16, 128, 1024>>(
          "product", "128 x 1024 x 1024, bf16"),
      trained<narrow_pair<dtype::f16, 1024, 1024>, tensor<dtype::f16, 128, 1024>>(
          "product", "128 x 1024 x 1024, f16"),
  };
  return cases;
}

}  // namespace cella::benchmark
