// Steps with the batch in the lanes: convolutions and their gradients, dense layers, the loss.
#pragma once

#include <cella/backend/cpu/lanes/convolution.hpp>
#include <cella/backend/cpu/lanes/convolution_weights.hpp>
#include <cella/backend/cpu/lanes/dense_rows.hpp>
#include <cella/backend/cpu/lanes/softmax.hpp>
#include <cella/backend/cpu/lower/record.hpp>

namespace cella::cpu {

template <class S>
constexpr lanes_convolution_extents lanes_window(S step) {
  const auto e = step.s.template as<convolution_step>();
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
/// Calls f(std::integral_constant<int, w>) with the filter's width: programs have one for all that
/// have a kernel, plans that are made at run time for the commonest.
template <class S, class F>
constexpr decltype(auto) with_fixed_width(S step, F f) {
  if constexpr (S::compiled) {
    return f(std::integral_constant<int, fixed_width(lanes_window(S{}))>{});
  } else {
    const int w = fixed_width(lanes_window(step));
    return w == 3   ? f(std::integral_constant<int, 3>{})
           : w == 5 ? f(std::integral_constant<int, 5>{})
                    : f(std::integral_constant<int, 0>{});
  }
}
/// The register tiles of a kernel: those of a program's step, or all.
template <class S, class Tiles>
constexpr tile_set tiles_of(Tiles tiles) {
  if constexpr (S::compiled)
    return tiles(S{});
  else
    return all_tiles;
}

struct lanes_convolution_record : record_in<step_kind::convolution, layout::lanes> {
  static constexpr int units(auto step, int) { return lanes_convolution_units(lanes_window(step)); }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte* scratch) {
    constexpr tile_set tiles =
        tiles_of<S>([](auto s) { return lanes_convolution_tiles(lanes_window(s)); });
    with_fixed_width(step, [&](auto width) {
      lanes_convolution<width, tiles>(units, lanes_window(step), step.in(m, 0), step.in(m, 1),
                                      step.lanes_epilogue(m, scratch));
    });
  }
};

/// The same and its maxima of 2 x 2, whose positions may be wanted, too.
struct lanes_convolution_pool_record : record_in<step_kind::convolution_pool, layout::lanes> {
  static constexpr int units(auto step, int) {
    return lanes_convolution_pool_units(lanes_window(step));
  }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte* scratch) {
    constexpr tile_set tiles =
        tiles_of<S>([](auto s) { return lanes_convolution_pool_tiles(lanes_window(s)); });
    with_fixed_width(step, [&](auto width) {
      lanes_convolution_pool<width, tiles>(units, lanes_window(step), step.in(m, 0), step.in(m, 1),
                                           step.pooled_epilogue(m, scratch));
    });
  }
};

struct lanes_convolution_input_gradient_record
    : record_in<step_kind::convolution_input_gradient, layout::lanes> {
  static constexpr int units(auto step, int) {
    return lanes_convolution_input_gradient_units(lanes_window(step));
  }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte* scratch) {
    constexpr tile_set tiles =
        tiles_of<S>([](auto s) { return lanes_convolution_input_gradient_tiles(lanes_window(s)); });
    lanes_convolution_input_gradient<row<S>, tiles>(units, lanes_window(step), step.in(m, 0),
                                                    step.in(m, 1), step.lanes_epilogue(m, scratch));
  }

 private:
  /// A row that is short enough to be unrolled, if it is a constant.
  template <class S>
  static constexpr row_window row = [] {
    if constexpr (S::compiled)
      return short_row(lanes_window(S{}));
    else
      return row_window{};
  }();
};

/// Of the filters; in the second form from the gradient of pooled maxima and their positions.
template <step_kind Kind>
struct lanes_filter_gradient_record : record_in<Kind, layout::lanes> {
  static constexpr bool pooled = Kind == step_kind::convolution_pool_weight_gradient;

  static constexpr int units(auto step, int) {
    return with_fixed_width(step, [&](auto width) {
      return lanes_convolution_weight_gradient_units<width>(lanes_window(step));
    });
  }
  template <class S>
  static constexpr std::int64_t scratch_bytes(S step) {
    using T = typename S::T;
    return std::int64_t{sizeof(T)} * with_fixed_width(step, [&](auto width) {
             if constexpr (pooled)
               return lanes_convolution_pool_weight_gradient_scratch<T, width>(lanes_window(step));
             else
               return lanes_convolution_weight_gradient_scratch<T, width>(lanes_window(step));
           });
  }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte* scratch) {
    auto* const sums = reinterpret_cast<typename S::T*>(scratch);
    with_fixed_width(step, [&](auto filter_width) {
      constexpr int width = filter_width;
      constexpr tile_set tiles = tiles_of<S>(
          [](auto s) { return lanes_convolution_weight_gradient_tiles<width>(lanes_window(s)); });
      if constexpr (pooled)
        lanes_convolution_pool_weight_gradient<width, tiles>(
            units, lanes_window(step), step.in(m, 0), step.in(m, 1),
            step.template in<const std::uint16_t>(m, 2), sums, step.plain_epilogue(m, scratch),
            step.side_epilogue(m));
      else
        lanes_convolution_weight_gradient<width, tiles>(units, lanes_window(step), step.in(m, 0),
                                                        step.in(m, 1), sums,
                                                        step.plain_epilogue(m, scratch));
    });
  }
};

struct lanes_max_unpool_record : record_for<step_kind::max_unpool_2x2> {
  template <class S>
  static constexpr lanes_convolution_extents extents(S step) {
    const auto y = step.s.template as<image_step>();
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
    lanes_unpool(units, extents(step), step.in(m, 0), step.template in<const std::uint16_t>(m, 1),
                 step.out(m, 0), step.side_epilogue(m));
  }
};

struct lanes_dense_record : record_in<step_kind::product, layout::lanes> {
  template <class S>
  static constexpr lanes_dense_extents extents(S step) {
    const auto e = step.s.template as<lanes_product_step>();
    return {lane_blocks<typename S::T>(e.samples), e.rows, e.inner, e.row_stride, e.column_stride};
  }
  static constexpr int units(auto step, int) { return lanes_dense_units(extents(step)); }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte* scratch) {
    constexpr tile_set tiles = tiles_of<S>([](auto s) { return lanes_dense_tiles(extents(s)); });
    lanes_dense<tiles>(units, extents(step), step.in(m, 1), step.in(m, 0),
                       step.lanes_epilogue(m, scratch));
  }
};

/// The gradient of a dense layer's weights: transposes the input, then sums over the samples.
struct lanes_dense_weight_gradient_record : record_for<step_kind::product_weights> {
  template <class S>
  static constexpr lanes_dense_weight_extents extents(S step) {
    const auto e = step.s.template as<lanes_weights_step>();
    return {lane_blocks<typename S::T>(e.samples), e.out_features, e.in_features};
  }
  static constexpr int most_phases = 2;
  static constexpr int phases(auto) { return 2; }
  template <class S>
  static constexpr int units(S step, int phase) {
    using T = typename S::T;
    const lanes_dense_weight_extents e = extents(step);
    if (phase == 0) return lanes_transpose_units<T>(e);
    return S::compiled ? lanes_dense_weight_gradient_units<T>(e) : lanes_dense_row_groups(e);
  }
  template <class S>
  static constexpr std::int64_t scratch_bytes(S step) {
    using T = typename S::T;
    if (S::compiled) return 0;
    return rows_bytes(step) +
           lanes_dense_row_group_sums<T>(extents(step)) * std::int64_t{sizeof(double)};
  }
  template <int Phase, class S>
  static void run(S step, const memory& m, work_range units, [[maybe_unused]] std::byte* scratch) {
    using T = typename S::T;
    const lanes_dense_weight_extents e = extents(step);
    if constexpr (Phase == 0) {
      lanes_transpose(units, e, step.in(m, 1), step.scratch(m));
    } else if constexpr (S::compiled) {
      constexpr tile_set tiles = lanes_dense_weight_gradient_tiles<T>(extents(S{}));
      lanes_dense_weight_gradient<tiles>(units, e, step.in(m, 0), step.template scratch<const T>(m),
                                         step.plain_epilogue(m));
    } else {
      T* const target = step.plain_target(m);
      auto* const sums = reinterpret_cast<double*>(scratch + rows_bytes(step));
      for (int u = units.first; u < units.last; ++u) {
        const std::int64_t first = lanes_dense_row_group_first(e, u);
        T* const to = target ? target + first : reinterpret_cast<T*>(scratch);
        lanes_dense_weight_gradient_rows(u, e, step.in(m, 0), step.template scratch<const T>(m), to,
                                         sums);
        if (!target) step.finish(m, to, first, lanes_dense_row_group_size(e, u), scratch);
      }
    }
  }

 private:
  /// Of the rows of a unit, as whole vectors.
  template <class S>
  static constexpr std::int64_t rows_bytes(S step) {
    using T = typename S::T;
    return align_up(lanes_dense_row_group_size(extents(step), 0) * std::int64_t{sizeof(T)});
  }
};

struct lanes_cross_entropy_record : record_in<step_kind::cross_entropy, layout::lanes> {
  template <class S>
  static constexpr std::int64_t scratch_bytes(S step) {
    using T = typename S::T;
    const auto l = step.s.template as<loss_step>();
    return lane_blocks<T>(l.samples) * std::int64_t{sizeof(T)};
  }
  template <int, class S>
  static void run(S step, const memory& m, work_range, std::byte* scratch) {
    using T = typename S::T;
    const auto l = step.s.template as<loss_step>();
    const lanes_softmax_extents e{l.samples, l.classes};
    const T scale = static_cast<T>(step.constant_factor(step.s.outputs[0].value));
    T* const gradient = step.s.output_count > 1 ? step.out(m, 1) : nullptr;
    T* const losses = reinterpret_cast<T*>(scratch);
    const int blocks = lanes_softmax_units<T>(e);
    lanes_softmax_cross_entropy({0, blocks}, e, step.in(m, 0),
                                step.template in<const std::int32_t>(m, 1), scale, gradient,
                                losses);
    double total = 0;
    for (int i = 0; i < blocks; ++i) total += double{losses[i]};
    *step.out(m, 0) = static_cast<T>(total);
  }
};

using lanes_records =
    record_list<lanes_convolution_record, lanes_convolution_pool_record,
                lanes_convolution_input_gradient_record,
                lanes_filter_gradient_record<step_kind::convolution_weight_gradient>,
                lanes_filter_gradient_record<step_kind::convolution_pool_weight_gradient>,
                lanes_max_unpool_record, lanes_dense_record, lanes_dense_weight_gradient_record,
                lanes_cross_entropy_record>;

}  // namespace cella::cpu
