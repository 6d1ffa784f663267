#include "nets.hpp"

namespace cella::benchmark {

namespace {
template <int Width, int Hidden>
using dense_pair = chain<nn::dense<Width, Hidden>, nn::dense<Hidden, Width>>;
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
  };
  return cases;
}

}  // namespace cella::benchmark
