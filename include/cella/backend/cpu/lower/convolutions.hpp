// Convolutions of plain images and their gradients.
#pragma once

#include <cella/backend/cpu/convolution/implicit_gemm.hpp>
#include <cella/backend/cpu/convolution/input_gradient.hpp>
#include <cella/backend/cpu/convolution/single_sample.hpp>
#include <cella/backend/cpu/convolution/weight_gradient.hpp>
#include <cella/backend/cpu/lower/record.hpp>
#include <cella/ops/convolution.hpp>

namespace cella::cpu {

constexpr convolution_extents plain_window(auto step) {
  const auto e = step.s.template as<convolution_step>();
  const auto w = step.template options<convolution_options>().window;
  return {e.samples,
          e.channels,
          e.filters,
          w.groups,
          {e.height, e.kernel_height, w.stride[0], w.before[0], w.after[0], w.dilation[0]},
          {e.width, e.kernel_width, w.stride[1], w.before[1], w.after[1], w.dilation[1]}};
}

struct convolution_record : record_in<step_kind::convolution, layout::plain> {
  template <class S>
  static constexpr int units(S step, int) {
    return convolution_units<typename S::T>(plain_window(step));
  }
  template <class S>
  static constexpr std::int64_t scratch_bytes(S step) {
    return convolution_scratch<typename S::T>(plain_window(step));
  }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte* scratch) {
    convolution(plain_window(step), step.in(m, 0), step.in(m, 1), step.plain_epilogue(m, scratch),
                scratch, units);
  }
};

struct convolution_input_gradient_record
    : record_in<step_kind::convolution_input_gradient, layout::plain> {
  template <class S>
  static constexpr int units(S step, int) {
    return convolution_input_gradient_units<typename S::T>(plain_window(step));
  }
  template <class S>
  static constexpr std::int64_t scratch_bytes(S step) {
    return convolution_input_gradient_scratch<typename S::T>(plain_window(step));
  }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte* scratch) {
    convolution_input_gradient(plain_window(step), step.in(m, 1), step.in(m, 0),
                               step.plain_epilogue(m, scratch), scratch, units);
  }
};

struct convolution_weight_gradient_record
    : record_in<step_kind::convolution_weight_gradient, layout::plain> {
  template <class S>
  static constexpr int units(S step, int) {
    return convolution_weight_gradient_units<typename S::T>(plain_window(step));
  }
  template <class S>
  static constexpr std::int64_t scratch_bytes(S step) {
    return convolution_weight_gradient_scratch<typename S::T>(plain_window(step));
  }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte* scratch) {
    convolution_weight_gradient(plain_window(step), step.in(m, 0), step.in(m, 1),
                                step.plain_epilogue(m, scratch), scratch, units);
  }
};

/// One image, its maxima of 2 x 2 taken in registers: packs the filters, gives the image a border
/// if it needs one, convolves.
struct convolution_pool_record : record_in<step_kind::convolution_pool, layout::plain> {
  template <class S>
  static constexpr int phases(S) {
    return pads_image<S> ? 3 : 2;
  }
  template <class S>
  static constexpr bool prepares(S) {
    return std::is_same_v<typename S::program,
                          typename S::program::root>;  // a region has no call before
  }
  template <class S>
  static constexpr int units(S step, int phase) {
    if (phase < phases(step) - 1) return 1;
    constexpr auto e = without_padding(plain_window(S{}));
    return channels_in_lanes<S> ? convolution_channels_units<pooling::maximum_2x2, typename S::T>(e)
                                : convolution_pixels_units<pooling::maximum_2x2>(e);
  }
  template <int Phase, class S>
  static void run(S step, const memory& m, work_range units, std::byte* scratch) {
    using T = typename S::T;
    constexpr auto e = without_padding(plain_window(S{}));
    if constexpr (Phase == 0) {
      if constexpr (channels_in_lanes<S>)
        pack_channels(e, step.in(m, 1), step.template in<T>(m, 3));
    } else if constexpr (pads_image<S> && Phase == 1) {
      pad_image(plain_window(step), step.in(m, 0), step.scratch(m));
    } else {
      const T* const image = pads_image<S> ? step.scratch(m) : step.in(m, 0);
      if constexpr (channels_in_lanes<S>) {
        convolution_channels<pooling::maximum_2x2>(e, image, step.in(m, 3),
                                                   step.plain_epilogue(m, scratch), units);
      } else {
        convolution_pixels<pooling::maximum_2x2>(e, image, step.in(m, 1),
                                                 step.plain_epilogue(m, scratch), units);
      }
    }
  }

 private:
  template <class S>
  static constexpr bool pads_image = S::s.scratch.valid();
  /// Output channels go into the lanes where they fill at least half of them.
  template <class S>
  static constexpr bool channels_in_lanes = [] {
    const auto e = S::s.template as<convolution_step>();
    return e.filters * 2 > S::L || e.stride_width != 1;
  }();
};

using convolution_records =
    record_list<convolution_record, convolution_input_gradient_record,
                convolution_weight_gradient_record, convolution_pool_record>;

}  // namespace cella::cpu
