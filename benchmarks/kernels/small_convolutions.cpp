#include "nets.hpp"

namespace cella::benchmark {

namespace {
struct lenet_layers {
  nn::conv2d<1, 6, 5> first{.padding = 2};
  nn::conv2d<6, 16, 5> second{};
  constexpr var operator()(var x) const {
    return max_pool(relu(second(max_pool(relu(first(x)), 2))), 2);
  }
};
template <int Channels>
struct pair {
  nn::conv2d<Channels, Channels, 3, false> first{.padding = 1}, second{.padding = 1};
  constexpr var operator()(var x) const { return second(relu(first(x))); }
};
}  // namespace

std::span<const kernel_case> small_convolutions() {
  static constexpr std::array cases{
      trained<lenet_layers, tensor<dtype::f32, 32, 1, 28, 28>>(
          "convolution", "32 x 1 x 28 x 28, 5x5 to 6, to 16, pooled (lenet32)"),
      predicted<lenet_layers, tensor<dtype::f32, 1, 1, 28, 28>>(
          "convolution", "1 x 1 x 28 x 28, 5x5 to 6, to 16, pooled (lenet1_infer)"),
      trained<pair<16>, tensor<dtype::f32, 32, 16, 32, 32>>("convolution",
                                                            "32 x 16 x 32 x 32, 3x3 (resnet20_32)"),
      trained<pair<64>, tensor<dtype::f32, 32, 64, 8, 8>>("convolution",
                                                          "32 x 64 x 8 x 8, 3x3 (resnet20_32)"),
      trained<pair<32>, tensor<dtype::f64, 8, 32, 28, 28>, dtype::f64>(
          "convolution", "8 x 32 x 28 x 28, 3x3, f64"),
  };
  return cases;
}

}  // namespace cella::benchmark
