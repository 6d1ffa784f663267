// Convolutions beside conv2d as cells: along one axis, transposed, separable.
#pragma once

#include <cella/nn/layers.hpp>

namespace cella::nn {

/// Convolution along one axis: [N,In,L] -> [N,Out,OL], OL = (L + 2 padding - dilation (Kernel - 1)
/// - 1) / stride + 1. `causal` pads the beginning only, so that no place sees a later one.
template <int In, int Out, int Kernel, int Groups = 1>
struct conv1d {
  parameter<Out, detail::size_of_part(In, Groups), Kernel> weight{};
  parameter<Out> bias{
      initializer::fan_in_uniform(std::int64_t{detail::size_of_part(In, Groups)} * Kernel)};
  int stride = 1;
  int padding = 0;
  int dilation = 1;
  bool causal = false;

  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    const cell_scope scope(x, *this);
    const int before = causal ? dilation * (Kernel - 1) : padding, after = causal ? 0 : padding;
    const var y = cella::conv1d({x, at}, {weight, at}, stride, before, after, dilation, Groups);
    return y + operand(reshape(operand(bias, at).in(*x.b), {Out, 1}), at);
  }
};

/// Transposed convolution with square filters: [N,In,H,W] -> [N,Out,OH,OW], OH = (H - 1) stride - 2
/// padding + dilation (Kernel - 1) + output_padding + 1.
template <int In, int Out, int Kernel, int Groups = 1>
struct conv2d_transpose {
  parameter<In, detail::size_of_part(Out, Groups), Kernel, Kernel> weight{
      initializer::fan_in_uniform(std::int64_t{detail::size_of_part(Out, Groups)} * Kernel *
                                  Kernel)};
  parameter<Out> bias{initializer::fan_in_uniform(std::int64_t{detail::size_of_part(Out, Groups)} *
                                                  Kernel * Kernel)};
  int stride = 1;
  int padding = 0;
  int output_padding = 0;
  int dilation = 1;

  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    const cell_scope scope(x, *this);
    const window walk{
        {stride, stride}, {padding, padding}, {padding, padding}, {dilation, dilation}, Groups};
    const var y =
        cella::conv2d_transpose({x, at}, {weight, at}, walk, {output_padding, output_padding});
    return y + operand(reshape(operand(bias, at).in(*x.b), {Out, 1, 1}), at);
  }
};

/// Each channel with filters of its own.
template <int Channels, int Kernel, int Multiplier = 1>
using depthwise_conv2d = conv2d<Channels, Channels * Multiplier, Kernel, true, Channels>;

/// Each channel with a filter of its own, then a product over the channels of each pixel:
/// [N,In,H,W] -> [N,Out,OH,OW].  Chollet 2017
template <int In, int Out, int Kernel>
struct separable_conv2d {
  conv2d<In, In, Kernel, false, In> depthwise{};
  conv2d<In, Out, 1> pointwise{};

  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    const cell_scope scope(x, *this);
    return pointwise(depthwise(x, at), at);
  }
};

}  // namespace cella::nn
