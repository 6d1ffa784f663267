// U-Net: an image for an image, from fine to coarse and back.  Ronneberger et al. 2015
#pragma once

#include <cella/nn/convolutions.hpp>
#include <cella/nn/layers.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/ops/slicing.hpp>

namespace cella::models {

/// Two 3x3 convolutions with batch norm and ReLU: [N,In,H,W] -> [N,Out,H,W].
template <int In, int Out>
struct double_conv {
  nn::conv2d<In, Out, 3, false> conv1{.padding = 1};
  nn::batch_norm<Out> norm1{};
  nn::conv2d<Out, Out, 3, false> conv2{.padding = 1};
  nn::batch_norm<Out> norm2{};

  constexpr var operator()(var x) const {
    x = relu(norm1(conv1(x)));
    return relu(norm2(conv2(x)));
  }
};

/// Twice as many pixels along each axis, beside what the way down has seen of them:
/// [N,2 Width,H,W] and [N,Width,2 H,2 W] -> [N,Width,2 H,2 W].
template <int Width>
struct up_block {
  nn::conv2d_transpose<2 * Width, Width, 2> enlarge{.stride = 2};
  double_conv<2 * Width, Width> conv{};

  constexpr var operator()(var coarse, var fine) const {
    return conv(concat({fine, enlarge(coarse)}, 1));
  }
};

/// Images [N,Channels,H,W], H and W multiples of 16 -> logits [N,Classes,H,W]. Convolutions are
/// padded, and followed by batch norm; unet<3, 2> has 31,037,698 parameters.
template <int Channels, int Classes, int Width = 64>
struct unet {
  double_conv<Channels, Width> down0{};
  double_conv<Width, 2 * Width> down1{};
  double_conv<2 * Width, 4 * Width> down2{};
  double_conv<4 * Width, 8 * Width> down3{};
  double_conv<8 * Width, 16 * Width> bottom{};
  up_block<8 * Width> up3{};
  up_block<4 * Width> up2{};
  up_block<2 * Width> up1{};
  up_block<Width> up0{};
  nn::conv2d<Width, Classes, 1> out{};

  constexpr var operator()(var x) const {
    const var a = down0(x);
    const var b = down1(max_pool(a, 2));
    const var c = down2(max_pool(b, 2));
    const var d = down3(max_pool(c, 2));
    x = bottom(max_pool(d, 2));
    return out(up0(up1(up2(up3(x, d), c), b), a));
  }
};

}  // namespace cella::models
