// Batch norm and its gradient, of plain images and of blocks of channels.
#pragma once

#include <cella/backend/cpu/lower/record.hpp>
#include <cella/backend/cpu/rows/batch_norm.hpp>
#include <cella/ops/batch_norm.hpp>

namespace cella::cpu {

/// Takes sums, in slices if there are many samples; then finishes them; then applies them. With one
/// slice the first two are one phase.
template <step_kind Kind>
struct batch_norm_record : record_for<Kind> {
  template <class S>
  static constexpr norm_extents extents(S) {
    const auto e = S::s.template as<norm_step>();
    return {e.samples, S::in_blocks ? e.channels / S::L : e.channels, e.pixels};
  }
  static constexpr int phases(auto step) { return extents(step).slices() > 1 ? 3 : 2; }
  static constexpr int units(auto step, int phase) {
    const norm_extents e = extents(step);
    if (phase == 0) return e.sum_units();
    return phase + 1 < phases(step) ? e.blocks : e.samples * e.blocks;
  }
  template <int Phase, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    using T = typename S::T;
    constexpr norm_extents e = extents(step);
    constexpr T epsilon = static_cast<T>(S::template options<batch_norm_options>().epsilon);
    const auto epilogue = [&] {
      if constexpr (S::in_blocks)
        return S::blocked_epilogue(m);
      else
        return S::plain_epilogue(m);
    };
    constexpr bool forward = Kind == step_kind::batch_norm, several = e.slices() > 1;
    T* const first = S::template in<T>(m, forward ? 3 : 5);
    T* const second = S::template in<T>(m, forward ? 4 : 6);
    const norm_factors<T> factors{S::in(m, 1), S::in(m, 3), S::in(m, 4), epsilon};
    if constexpr (Phase + 1 == phases(step) && forward) {
      batch_norm<T, S::in_blocks>(units, e, S::in(m, 0), factors, S::in(m, 2), epilogue());
    } else if constexpr (Phase + 1 == phases(step)) {
      batch_norm_gradient<T, S::in_blocks>(units, e, S::in(m, 0), S::in(m, 2), factors, first,
                                           second, epilogue());
    } else {
      norm_sums<T> sums{first, second};
      if constexpr (several) {
        const int channels = S::s.template as<norm_step>().channels;
        sums = {S::scratch(m), S::scratch(m) + channels, 2 * channels};
      }
      if constexpr (Phase == 0 && forward)
        sum_moments<T, S::in_blocks>(units, e, S::in(m, 0), sums);
      else if constexpr (Phase == 0)
        sum_norm_gradients<T, S::in_blocks>(units, e, S::in(m, 0), S::in(m, 2), S::in(m, 3), sums);
      if constexpr ((Phase == 1 || !several) && forward)
        finish_moments<T, S::in_blocks>(units, e, S::in(m, 0), sums, first, second);
      else if constexpr (Phase == 1 || !several)
        finish_norm_gradients<T, S::in_blocks>(units, e, factors, sums, first, second);
    }
  }
};

using norm_records = record_list<batch_norm_record<step_kind::batch_norm>,
                                 batch_norm_record<step_kind::batch_norm_gradient>>;

}  // namespace cella::cpu
