// MobileNetV2: depthwise convolutions between narrow layers.  Sandler et al. 2018
#pragma once

#include <array>
#include <cella/models/resnet.hpp>
#include <cella/nn/layers.hpp>
#include <cella/ops/activation.hpp>
#include <type_traits>

namespace cella::models {

/// A convolution, batch norm and ReLU6: [N,In,H,W] -> [N,Out,H/Stride,W/Stride], rounded up.
template <int In, int Out, int Kernel, int Stride = 1, int Groups = 1>
struct conv_norm_relu6 {
  nn::conv2d<In, Out, Kernel, false, Groups> conv{.stride = Stride, .padding = Kernel / 2};
  nn::batch_norm<Out> norm{};

  constexpr var operator()(var x) const { return relu6(norm(conv(x))); }
};

/// A 1x1 convolution to `Expand` times as many channels, a depthwise 3x3 one and a linear 1x1 one:
/// [N,In,H,W] -> [N,Out,H/Stride,W/Stride], rounded up. The input is added where the shape stays.
template <int In, int Out, int Stride, int Expand>
struct inverted_residual {
  using widening = std::conditional_t<Expand == 1, identity, conv_norm_relu6<In, In * Expand, 1>>;
  widening expand{};
  conv_norm_relu6<In * Expand, In * Expand, 3, Stride, In * Expand> depthwise{};
  nn::conv2d<In * Expand, Out, 1, false> project{};
  nn::batch_norm<Out> norm{};

  constexpr var operator()(var x) const {
    const var y = norm(project(depthwise(expand(x))));
    return In == Out && Stride == 1 ? x + y : y;
  }
};

/// Images [N,3,H,W] (ImageNet: 224 x 224) -> logits [N,Classes]; 3,504,872 parameters for 1,000
/// classes.
template <int Classes = 1000>
struct mobilenet_v2 {
  /// Blocks of one width, of which the first has the stride.
  template <int In, int Out, int Stride, int Count>
  using blocks =
      stage<inverted_residual<In, Out, Stride, 6>, inverted_residual<Out, Out, 1, 6>, Count - 1>;

  conv_norm_relu6<3, 32, 3, 2> first{};
  inverted_residual<32, 16, 1, 1> stage1{};
  blocks<16, 24, 2, 2> stage2{};
  blocks<24, 32, 2, 3> stage3{};
  blocks<32, 64, 2, 4> stage4{};
  blocks<64, 96, 1, 3> stage5{};
  blocks<96, 160, 2, 3> stage6{};
  inverted_residual<160, 320, 1, 6> stage7{};
  conv_norm_relu6<320, 1280, 1> last{};
  double drop_rate = 0.2;
  nn::dense<1280, Classes> fc{};

  constexpr var operator()(var x) const {
    x = stage3(stage2(stage1(first(x))));
    x = stage7(stage6(stage5(stage4(x))));
    return fc(dropout(global_average_pool(last(x)), drop_rate));
  }
};

}  // namespace cella::models
