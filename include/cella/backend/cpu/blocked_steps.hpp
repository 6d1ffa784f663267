// Steps of a plan that work on images in blocks of channels: their phases, units of work and calls.
#pragma once

#include <cella/backend/cpu/batch_norm.hpp>
#include <cella/backend/cpu/blocked_convolution.hpp>
#include <cella/backend/cpu/blocked_depthwise.hpp>
#include <cella/backend/cpu/blocked_pool.hpp>
#include <cella/backend/cpu/blocked_stem.hpp>
#include <cella/backend/cpu/blocked_weight_gradient.hpp>
#include <cella/backend/cpu/winograd_weight_gradient.hpp>
#include <cella/passes/plan.hpp>

namespace cella::cpu {

/// Whether the step has a kernel here. (Loops over blocks are loops like others.)
constexpr bool has_blocked_kernel(const plan_step& s) {
  switch (s.kind) {
    case step_kind::convolution:
    case step_kind::convolution_input_gradient:
    case step_kind::convolution_weight_gradient:
      return s.arrangement == layout::blocked;
    case step_kind::max_pool:
    case step_kind::max_unpool:
    case step_kind::batch_norm:
    case step_kind::batch_norm_gradient:
    case step_kind::pack_blocks:
    case step_kind::unpack_blocks:
      return true;
    default:
      return false;
  }
}

/// What a step with such a kernel is, from its plan.
template <class T>
struct blocked_step {
  const plan_step& s;

  static constexpr int L = lanes<T>;
  constexpr int extent(int i) const { return int(s.extents[std::size_t(i)]); }
  constexpr bool weights() const { return s.kind == step_kind::convolution_weight_gradient; }
  constexpr bool backward() const { return s.kind == step_kind::convolution_input_gradient; }
  constexpr bool convolves() const {
    return s.kind == step_kind::convolution || weights() || backward();
  }
  constexpr bool norms() const {
    return s.kind == step_kind::batch_norm || s.kind == step_kind::batch_norm_gradient;
  }
  constexpr norm_extents norm() const {
    return {extent(0), s.arrangement == layout::blocked ? extent(1) / L : extent(1), extent(2)};
  }
  /// A plain image of few channels.
  constexpr bool stem() const { return convolves() && extent(1) % L != 0; }
  constexpr bool packs_filters() const { return convolves() && !weights(); }
  /// The filters are kept from call to call; the convolution is Winograd's, or depthwise.
  constexpr bool keeps_filters() const { return packs_filters() && (extent(11) & 1); }
  constexpr bool minimal() const { return convolves() && (extent(11) & 2); }
  constexpr bool depthwise() const { return convolves() && (extent(11) & 4); }

  // Phases: a convolution packs its filters, pads a stem's image, then computes. A weight gradient
  // pads, sums, then finishes; Winograd's may transform and sum a chunk of tiles after the other.
  // The sums of a batch norm are taken in slices, if at all, which are then added.
  constexpr int phases() const {
    if (weights() && minimal()) return cpu::winograd::gradient_phases<T>(window()) + 1;
    if (norms()) return norm().slices() > 1 ? 3 : 2;
    return !convolves() ? 1 : stem() ? 3 : 2;
  }

  constexpr int units(int phase) const {
    const auto e = window();
    if (stem()) {
      const stem_extents m = stem_window();
      const int pads = weights() ? 0 : 1;
      if (phase == pads) return m.samples * m.channels;
      if (phase < 2 && !weights()) return m.out_blocks;
      if (!weights()) return stem_units<T>(m);
      return phase == 1 ? stem_gradient_units<T>(m) : m.out_blocks;
    }
    if (minimal() && weights()) {
      if (phase + 1 == phases()) return e.out_blocks;
      return cpu::winograd::gradient_phase_units<T>(e, phase);
    }
    if (minimal() && phase == 1) {
      return backward() ? cpu::winograd::units<T>(cpu::winograd::backward_tiles(e), e.out_blocks,
                                                  e.in_blocks)
                        : cpu::winograd::units<T>(cpu::winograd::forward_tiles(e), e.in_blocks,
                                                  e.out_blocks);
    }
    if (depthwise()) return phase == 1 && !weights() ? depthwise_units(e) : e.in_blocks;
    switch (s.kind) {
      case step_kind::convolution:
        return phase == 0 ? e.out_blocks : blocked_convolution_units<T>(e);
      case step_kind::convolution_input_gradient:
        return phase == 0 ? e.in_blocks : blocked_input_gradient_units<T>(e);
      case step_kind::convolution_weight_gradient:
        return phase == 0 ? blocked_weight_gradient_units<T>(e) : e.out_blocks;
      case step_kind::max_pool:
      case step_kind::max_unpool:
        return pooling().planes;
      case step_kind::batch_norm:
      case step_kind::batch_norm_gradient:
        if (phase == 0) return norm().sum_units();
        return phase + 1 < phases() ? norm().blocks : norm().samples * norm().blocks;
      default:
        return extent(0) * (extent(1) / L);
    }
  }

  /// Bytes for each thread.
  constexpr std::int64_t scratch() const {
    const auto e = window();
    if (!minimal()) return 0;
    if (weights()) {
      const bool own = cpu::winograd::gradient_slices<T>(e) > 1;
      return own ? cpu::winograd::gradient_tiles_size<T>(e) * std::int64_t{sizeof(T)} : 0;
    }
    return backward() ? cpu::winograd::scratch<T>(cpu::winograd::backward_tiles(e), e.out_blocks,
                                                  e.in_blocks)
                      : cpu::winograd::scratch<T>(cpu::winograd::forward_tiles(e), e.in_blocks,
                                                  e.out_blocks);
  }

  constexpr blocked_convolution_extents window() const {
    return {extent(0), extent(1) / L, extent(2), extent(3),  extent(4) / L, extent(5), extent(6),
            extent(7), extent(8),     extent(9), extent(10), result(0),     result(1)};
  }
  constexpr stem_extents stem_window() const {
    return {extent(0), extent(1), extent(2), extent(3),  extent(4) / L, extent(5), extent(6),
            extent(7), extent(8), extent(9), extent(10), result(0),     result(1)};
  }
  /// Filters of one channel each.
  constexpr stem_extents depthwise_filters() const {
    stem_extents e;
    e.channels = 1;
    e.out_blocks = extent(4) / L;
    e.kernel_height = extent(5);
    e.kernel_width = extent(6);
    return e;
  }
  constexpr blocked_window pooling() const {
    return {extent(0) * (extent(1) / L),
            extent(2),
            extent(3),
            extent(4),
            extent(5),
            extent(6),
            extent(7),
            extent(8),
            extent(9),
            extent(10),
            extent(11)};
  }

 private:
  /// Extent of a convolution's result, whose padding is the same at both ends.
  constexpr int result(int axis) const {
    if (!convolves()) return 0;
    return (extent(2 + axis) + 2 * extent(9 + axis) - extent(5 + axis)) / extent(7 + axis) + 1;
  }
};

}  // namespace cella::cpu
