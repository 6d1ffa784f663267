// Direct convolutions of images in blocks of channels that are stored in bf16, and their gradients:
// in pairs, by the matrix unit where there is one.
#pragma once

#include <cella/backend/cpu/blocked/pairs.hpp>
#include <cella/backend/cpu/blocked/unit_convolution.hpp>
#include <cella/backend/cpu/blocked/unit_weight_gradient.hpp>
#include <cella/backend/cpu/lower/blocked_convolutions.hpp>

namespace cella::cpu {

/// Whether the matrix unit multiplies them.
template <class T>
inline constexpr bool multiplies_by_unit = has_matrix_unit&& std::is_same_v<T, float>;

template <step_kind Kind>
struct paired_convolution_record : blocked_record<Kind, convolution_form::pairs> {
  using base = blocked_record<Kind, convolution_form::pairs>;
  static constexpr bool backward = base::backward;

  template <class S>
  static constexpr int units(S step, int phase) {
    using T = typename S::T;
    const auto e = base::window(step);
    if (phase == 0) return backward ? e.in_blocks : e.out_blocks;
    if (by_unit(step))
      return backward ? unit_input_gradient_units<T>(e) : unit_convolution_units<T>(e);
    return backward ? blocked_input_gradient_units<T, 2>(e) : blocked_convolution_units<T, 2>(e);
  }
  template <class S>
  static constexpr std::int64_t scratch_bytes(S step) {
    using T = typename S::T;
    if (!by_unit(step)) return 0;
    const auto e = base::window(step);
    return backward ? unit_input_gradient_scratch<T>(e) : unit_convolution_scratch<T>(e);
  }
  template <int Phase, class S>
  static void run(S step, const memory& m, work_range units, [[maybe_unused]] std::byte* scratch) {
    using T = typename S::T;
    const auto e = base::window(step);
    if constexpr (!std::is_same_v<T, float>) {
      return;  // there are no such steps
    } else if constexpr (Phase == 0) {
      T* const to = base::filters(step, m);
      with_stored_type(step, stored_filter, [&]<class Stored>(Stored) {
        const auto* const w = step.template in<const Stored>(m, 1);
        if constexpr (backward)
          pack_filter_pairs_transposed<T>(units, e.in_blocks, e.out_blocks, e.taps(), w, to);
        else
          pack_filter_pairs<T>(units, e.in_blocks, e.taps(), w, to);
      });
    } else {
      with_constant(step, is_by_unit, [&](auto unit) {
        const auto& sink = step.blocked_epilogue(m, scratch);
        const T *const from = step.in(m, 0), *const packed = base::filters(step, m);
        if constexpr (unit && multiplies_by_unit<T> && backward)
          unit_input_gradient<matrix_unit, T>(units, e, from, packed, sink, scratch);
        else if constexpr (unit && multiplies_by_unit<T>)
          unit_convolution<matrix_unit, T>(units, e, from, packed, sink, scratch);
        else if constexpr (backward)
          blocked_input_gradient<T, 2>(units, e, from, packed, sink);
        else
          blocked_convolution<T, 2>(units, e, from, packed, sink);
      });
    }
  }

 private:
  /// Whether the matrix unit does it, which takes two blocks of channels at a time.
  template <class S>
  static constexpr bool by_unit(S step) {
    const auto e = base::window(step);
    return multiplies_by_unit<typename S::T> && (backward ? e.out_blocks : e.in_blocks) % 2 == 0;
  }
  static constexpr auto is_by_unit = [](auto step) { return by_unit(step); };
  static constexpr auto stored_filter = [](auto step) -> dtype {
    return step.s.template as<convolution_step>().filter;
  };
};

struct paired_weight_gradient_record
    : blocked_record<step_kind::convolution_weight_gradient, convolution_form::pairs> {
  template <class S>
  static constexpr int units(S step, int phase) {
    using T = typename S::T;
    const auto e = window(step);
    if (phase == 1) return e.out_blocks;
    return multiplies_by_unit<T> ? unit_weight_gradient_units<T>(e)
                                 : paired_weight_gradient_units<T>(e);
  }
  template <class S>
  static constexpr std::int64_t scratch_bytes(S step) {
    using T = typename S::T;
    const auto e = window(step);
    return multiplies_by_unit<T> ? unit_weight_gradient_scratch<T>(e)
                                 : paired_weight_gradient_scratch<T>(e);
  }
  template <int Phase, class S>
  static void run(S step, const memory& m, work_range units, std::byte* scratch) {
    using T = typename S::T;
    const auto e = window(step);
    if constexpr (!std::is_same_v<T, float>)
      return;  // there are no such steps
    else if constexpr (Phase == 0 && multiplies_by_unit<T>)
      unit_weight_gradient<matrix_unit, T>(units, e, step.template in<const bfloat16>(m, 0),
                                           step.template in<const bfloat16>(m, 1), filters(step, m),
                                           scratch);
    else if constexpr (Phase == 0)
      paired_weight_gradient<T>(units, e, step.template in<const bfloat16>(m, 0),
                                step.template in<const bfloat16>(m, 1), filters(step, m), scratch);
    else
      finish_filters<T>(units, e, filters(step, m), step.plain_epilogue(m, scratch));
  }
};

}  // namespace cella::cpu
