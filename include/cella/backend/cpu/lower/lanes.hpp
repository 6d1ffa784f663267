// Steps with the batch in the lanes: convolutions and their gradients, dense layers, the loss.
#pragma once

#include <array>
#include <cella/backend/cpu/lanes/convolution.hpp>
#include <cella/backend/cpu/lanes/convolution_weights.hpp>
#include <cella/backend/cpu/lanes/dense.hpp>
#include <cella/backend/cpu/lanes/softmax.hpp>
#include <cella/backend/cpu/lower/record.hpp>

namespace cella::cpu {

template <class S>
constexpr lanes_convolution_extents lanes_window(S) {
  const auto e = S::s.template as<convolution_step>();
  return {lane_blocks<typename S::T>(e.samples),
          e.channels,
          e.height,
          e.width,
          e.filters,
          e.kernel_height,
          e.kernel_width,
          e.stride_height,
          e.stride_width,
          e.padding_height,
          e.padding_width};
}
/// Filter widths that have a kernel of their own; 0: any.
constexpr int fixed_width(const lanes_convolution_extents& e) {
  const int w = e.kernel_width;
  return e.stride_width == 1 && (w == 1 || w == 3 || w == 5 || w == 7) ? w : 0;
}

struct lanes_convolution_record : record_in<step_kind::convolution, layout::lanes> {
  static constexpr int units(auto step, int) { return lanes_convolution_units(lanes_window(step)); }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    constexpr auto e = lanes_window(step);
    lanes_convolution<fixed_width(e), lanes_convolution_tiles(e)>(
        units, e, S::in(m, 0), S::in(m, 1), S::lanes_epilogue(m));
  }
};

/// The same and its maxima of 2 x 2, whose positions may be wanted, too.
struct lanes_convolution_pool_record : record_in<step_kind::convolution_pool, layout::lanes> {
  static constexpr int units(auto step, int) {
    return lanes_convolution_pool_units(lanes_window(step));
  }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    constexpr auto e = lanes_window(step);
    constexpr bool positions = S::s.pool_argmax.valid();
    const pooled_sink<typename S::T, decltype(S::lanes_epilogue(m)), positions> sink{
        S::lanes_epilogue(m), positions ? m.at<std::uint16_t>(S::s.pool_argmax) : nullptr};
    lanes_convolution_pool<fixed_width(e), lanes_convolution_pool_tiles(e)>(units, e, S::in(m, 0),
                                                                            S::in(m, 1), sink);
  }
};

struct lanes_convolution_input_gradient_record
    : record_in<step_kind::convolution_input_gradient, layout::lanes> {
  static constexpr int units(auto step, int) {
    return lanes_convolution_input_gradient_units(lanes_window(step));
  }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    constexpr auto e = lanes_window(step);
    lanes_convolution_input_gradient<short_row(e), lanes_convolution_input_gradient_tiles(e)>(
        units, e, S::in(m, 0), S::in(m, 1), S::lanes_epilogue(m));
  }
};

struct lanes_convolution_weight_gradient_record
    : record_in<step_kind::convolution_weight_gradient, layout::lanes> {
  static constexpr int units(auto step, int) {
    constexpr auto e = lanes_window(step);
    return lanes_convolution_weight_gradient_units<fixed_width(e)>(e);
  }
  template <class S>
  static constexpr std::int64_t scratch_bytes(S step) {
    constexpr auto e = lanes_window(step);
    using T = typename S::T;
    return std::int64_t{sizeof(T)} *
           lanes_convolution_weight_gradient_scratch<T, fixed_width(e)>(e);
  }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte* scratch) {
    constexpr auto e = lanes_window(step);
    constexpr int width = fixed_width(e);
    lanes_convolution_weight_gradient<width, lanes_convolution_weight_gradient_tiles<width>(e)>(
        units, e, S::in(m, 0), S::in(m, 1), reinterpret_cast<typename S::T*>(scratch),
        S::plain_epilogue(m));
  }
};

/// The same from the gradient of pooled maxima and their positions.
struct lanes_convolution_pool_weight_gradient_record
    : record_for<step_kind::convolution_pool_weight_gradient> {
  static constexpr int units(auto step, int) {
    constexpr auto e = lanes_window(step);
    return lanes_convolution_weight_gradient_units<fixed_width(e)>(e);
  }
  template <class S>
  static constexpr std::int64_t scratch_bytes(S step) {
    constexpr auto e = lanes_window(step);
    using T = typename S::T;
    return std::int64_t{sizeof(T)} *
           lanes_convolution_pool_weight_gradient_scratch<T, fixed_width(e)>(e);
  }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte* scratch) {
    constexpr auto e = lanes_window(step);
    constexpr int width = fixed_width(e);
    lanes_convolution_pool_weight_gradient<width,
                                           lanes_convolution_weight_gradient_tiles<width>(e)>(
        units, e, S::in(m, 0), S::in(m, 1), S::template in<const std::uint16_t>(m, 2),
        reinterpret_cast<typename S::T*>(scratch), S::plain_epilogue(m), S::side_epilogue(m));
  }
};

struct lanes_max_unpool_record : record_for<step_kind::max_unpool_2x2> {
  template <class S>
  static constexpr lanes_convolution_extents extents(S) {
    const auto y = S::s.template as<image_step>();
    return {.blocks = lane_blocks<typename S::T>(y.samples),
            .in_channels = 1,
            .height = y.height,
            .width = y.width,
            .out_channels = y.channels,
            .kernel_height = 1,
            .kernel_width = 1};
  }
  static constexpr int units(auto step, int) { return lanes_unpool_units(extents(step)); }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    lanes_unpool(units, extents(step), S::in(m, 0), S::template in<const std::uint16_t>(m, 1),
                 S::out(m, 0), S::side_epilogue(m));
  }
};

struct lanes_dense_record : record_in<step_kind::product, layout::lanes> {
  template <class S>
  static constexpr lanes_dense_extents extents(S) {
    const auto e = S::s.template as<lanes_product_step>();
    return {lane_blocks<typename S::T>(e.samples), e.rows, e.inner, e.row_stride, e.column_stride};
  }
  static constexpr int units(auto step, int) { return lanes_dense_units(extents(step)); }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    constexpr auto e = extents(step);
    lanes_dense<lanes_dense_tiles(e)>(units, e, S::in(m, 1), S::in(m, 0), S::lanes_epilogue(m));
  }
};

/// The gradient of a dense layer's weights: transposes the input, then sums over the samples.
struct lanes_dense_weight_gradient_record : record_for<step_kind::product_weights> {
  template <class S>
  static constexpr lanes_dense_weight_extents extents(S) {
    const auto e = S::s.template as<lanes_weights_step>();
    return {lane_blocks<typename S::T>(e.samples), e.out_features, e.in_features};
  }
  static constexpr int phases(auto) { return 2; }
  template <class S>
  static constexpr int units(S step, int phase) {
    using T = typename S::T;
    return phase == 0 ? lanes_transpose_units<T>(extents(step))
                      : lanes_dense_weight_gradient_units<T>(extents(step));
  }
  template <int Phase, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    constexpr auto e = extents(step);
    if constexpr (Phase == 0) {
      lanes_transpose(units, e, S::in(m, 1), S::scratch(m));
    } else {
      lanes_dense_weight_gradient<lanes_dense_weight_gradient_tiles<typename S::T>(e)>(
          units, e, S::in(m, 0), S::template scratch<const typename S::T>(m), S::plain_epilogue(m));
    }
  }
};

struct lanes_cross_entropy_record : record_in<step_kind::cross_entropy, layout::lanes> {
  template <int, class S>
  static void run(S, const memory& m, work_range, std::byte*) {
    using T = typename S::T;
    constexpr auto l = S::s.template as<loss_step>();
    constexpr lanes_softmax_extents e{l.samples, l.classes};
    constexpr T scale = static_cast<T>(S::constant_factor(S::s.outputs[0].value));
    T* const gradient = S::s.output_count > 1 ? S::out(m, 1) : nullptr;
    std::array<T, std::size_t(lane_blocks<T>(l.samples))> losses{};
    lanes_softmax_cross_entropy({0, lanes_softmax_units<T>(e)}, e, S::in(m, 0),
                                S::template in<const std::int32_t>(m, 1), scale, gradient,
                                losses.data());
    double total = 0;
    for (T loss : losses) total += double{loss};
    *S::out(m, 0) = static_cast<T>(total);
  }
};

using lanes_records =
    record_list<lanes_convolution_record, lanes_convolution_pool_record,
                lanes_convolution_input_gradient_record, lanes_convolution_weight_gradient_record,
                lanes_convolution_pool_weight_gradient_record, lanes_max_unpool_record,
                lanes_dense_record, lanes_dense_weight_gradient_record, lanes_cross_entropy_record>;

}  // namespace cella::cpu
