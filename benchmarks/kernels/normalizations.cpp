#include "nets.hpp"

namespace cella::benchmark {

namespace {
/// Batch norm and its like follow a convolution in blocks: here a cheap one.
struct normalized_image {
  nn::conv2d<16, 64, 1, false> conv{};
  nn::batch_norm<64> norm{};
  constexpr var operator()(var x) const { return relu(norm(conv(x))); }
};
struct pooled_image {
  nn::conv2d<16, 64, 1, false> conv{};
  constexpr var operator()(var x) const { return max_pool(conv(x), 3, 2, 1); }
};
/// The product keeps the two passes of the norm apart, as whatever follows it in a net does.
template <int Width>
struct normalized_rows {
  parameter<Width> weight{initializer::normal()};
  nn::layer_norm<Width> norm{};
  nn::dense<Width, 32> next{};
  constexpr var operator()(var x) const { return next(norm(x + weight)); }
};
}  // namespace

std::span<const kernel_case> normalizations() {
  static constexpr std::array cases{
      trained<normalized_image, tensor<dtype::f32, 8, 16, 56, 56>>("batch norm",
                                                                   "8 x 64 x 56 x 56 (resnet50_8)"),
      trained<pooled_image, tensor<dtype::f32, 8, 16, 112, 112>>(
          "pooling", "8 x 64 x 112 x 112, 3x3 by 2 (resnet50_8)"),
      trained<normalized_rows<256>, tensor<dtype::f32, 1024, 256>>("layer norm",
                                                                   "1024 x 256 (gpt_8)"),
      trained<normalized_rows<1024>, tensor<dtype::f32, 16384, 1024>>("layer norm", "16384 x 1024"),
  };
  return cases;
}

}  // namespace cella::benchmark
