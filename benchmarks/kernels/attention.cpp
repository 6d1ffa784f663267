#include <cella/nn/attention.hpp>

#include "nets.hpp"

namespace cella::benchmark {

std::span<const kernel_case> attention() {
  static constexpr std::array cases{
      trained<nn::self_attention<256, 4>, tensor<dtype::f32, 8, 128, 256>>(
          "attention", "8 x 4 heads x 128 x 64 (gpt_8)"),
      predicted<nn::self_attention<256, 4>, tensor<dtype::f32, 1, 128, 256>>(
          "attention", "1 x 4 heads x 128 x 64 (gpt_1_infer)"),
  };
  return cases;
}

}  // namespace cella::benchmark
