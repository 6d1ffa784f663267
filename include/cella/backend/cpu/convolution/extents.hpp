// The extents of a two-dimensional convolution of plain NCHW tensors.
#pragma once

namespace cella::cpu {

/// One axis of a convolution.
struct convolution_axis {
  int size = 1;    // of the input
  int kernel = 1;  // taps
  int stride = 1;
  int padding_before = 0, padding_after = 0;  // zeros round the input, none negative
  int dilation = 1;                           // distance of the taps

  /// Extent of the output: 0 if the kernel does not fit the padded input.
  constexpr int output() const {
    const int span = (kernel - 1) * dilation + 1;
    const int padded = size + padding_before + padding_after;
    return padded < span ? 0 : (padded - span) / stride + 1;
  }
};

/// x [samples, in_channels, H, W], w [out_channels, in_channels / groups, KH, KW],
/// y [samples, out_channels, OH, OW]. `groups` divides both numbers of channels.
struct convolution_extents {
  int samples{}, in_channels{}, out_channels{}, groups = 1;
  convolution_axis vertical{}, horizontal{};

  constexpr int group_inputs() const { return in_channels / groups; }
  constexpr int group_outputs() const { return out_channels / groups; }
  constexpr int taps() const { return vertical.kernel * horizontal.kernel; }
  constexpr int input_size() const { return vertical.size * horizontal.size; }
  constexpr int output_size() const { return vertical.output() * horizontal.output(); }
};

}  // namespace cella::cpu
