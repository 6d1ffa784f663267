#include "nets.hpp"

// Layers of the larger residual net, whose images lie in blocks of channels.
namespace cella::benchmark {

namespace {
/// Two convolutions, In -> Out -> Out: the first with a stride, the second without.
template <int In, int Out, int Kernel, int Stride = 1>
struct pair {
  nn::conv2d<In, Out, Kernel, false> first{.stride = Stride, .padding = Kernel / 2};
  nn::conv2d<Out, Out, Kernel, false> second{.padding = Kernel / 2};
  constexpr var operator()(var x) const { return second(relu(first(x))); }
};
/// The first convolution of the net, and one that reads its blocks.
struct stem {
  nn::conv2d<3, 64, 7, false> first{.stride = 2, .padding = 3};
  nn::conv2d<64, 64, 1, false> second{.stride = 2};
  constexpr var operator()(var x) const { return second(relu(first(x))); }
};
/// A depthwise convolution and the 1x1 one behind it.
template <int Channels, int Stride>
struct separable {
  nn::conv2d<Channels, Channels, 1, false> before{};
  nn::conv2d<Channels, Channels, 3, false, Channels> depthwise{.stride = Stride, .padding = 1};
  nn::conv2d<Channels, Channels, 1, false> pointwise{};
  constexpr var operator()(var x) const { return pointwise(relu(depthwise(relu(before(x))))); }
};
}  // namespace

std::span<const kernel_case> image_convolutions() {
  static constexpr std::array cases{
      trained<pair<64, 64, 3>, tensor<dtype::f32, 8, 64, 56, 56>>(
          "convolution", "8 x 64 x 56 x 56, 3x3 (resnet50_8)"),
      trained<pair<256, 256, 3>, tensor<dtype::f32, 8, 256, 14, 14>>(
          "convolution", "8 x 256 x 14 x 14, 3x3 (resnet50_8)"),
      trained<pair<128, 128, 3, 2>, tensor<dtype::f32, 8, 128, 56, 56>>(
          "convolution", "8 x 128 x 56 x 56, 3x3 by 2, then 28 x 28 (resnet50_8)"),
      trained<pair<64, 256, 1>, tensor<dtype::f32, 8, 64, 56, 56>>(
          "convolution", "8 x 64 x 56 x 56, 1x1 to 256 (resnet50_8)"),
      trained<stem, tensor<dtype::f32, 8, 3, 224, 224>>(
          "convolution", "8 x 3 x 224 x 224, 7x7 by 2 to 64 (resnet50_8)"),
      trained<separable<32, 1>, tensor<dtype::f32, 8, 32, 112, 112>>(
          "convolution", "8 x 32 x 112 x 112, 3x3 depthwise, 1x1 (mobilenet)"),
      trained<separable<128, 2>, tensor<dtype::f32, 8, 128, 56, 56>>(
          "convolution", "8 x 128 x 56 x 56, 3x3 depthwise by 2, 1x1 (mobilenet)"),
      trained<separable<512, 1>, tensor<dtype::f32, 8, 512, 14, 14>>(
          "convolution", "8 x 512 x 14 x 14, 3x3 depthwise, 1x1 (mobilenet)"),
      predicted<pair<64, 64, 3>, tensor<dtype::f32, 1, 64, 56, 56>>(
          "convolution", "1 x 64 x 56 x 56, 3x3 (resnet50_1_infer)"),
  };
  return cases;
}

}  // namespace cella::benchmark
