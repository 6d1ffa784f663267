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
  static constexpr norm_extents extents(S step) {
    const auto e = step.s.template as<norm_step>();
    return {e.samples, is_blocked(step) ? e.channels / S::L : e.channels, e.pixels};
  }
  static constexpr int most_phases = 3;
  static constexpr int phases(auto step) { return extents(step).slices() > 1 ? 3 : 2; }
  static constexpr int units(auto step, int phase) {
    const norm_extents e = extents(step);
    if (phase == 0) return e.sum_units();
    return phase + 1 < phases(step) ? e.blocks : e.samples * e.blocks;
  }
  template <int Phase, class S>
  static void run(S step, const memory& m, work_range units, std::byte* scratch) {
    with_constant(step, is_blocked,
                  [&](auto blocked) { run_phase<Phase, blocked>(step, m, units, scratch); });
  }

 private:
  static constexpr auto is_blocked = [](auto step) {
    return step.s.arrangement == layout::blocked;
  };
  template <int Phase, bool Blocked, class S>
  static void run_phase(S step, const memory& m, work_range units, std::byte* scratch) {
    using T = typename S::T;
    const norm_extents e = extents(step);
    const T epsilon = static_cast<T>(step.template options<batch_norm_options>().epsilon);
    const auto epilogue = [&] {
      if constexpr (Blocked)
        return step.blocked_epilogue(m, scratch);
      else
        return step.plain_epilogue(m, scratch);
    };
    constexpr bool forward = Kind == step_kind::batch_norm;
    [[maybe_unused]] const bool several = e.slices() > 1;
    T* const first = step.template in<T>(m, forward ? 3 : 5);
    T* const second = step.template in<T>(m, forward ? 4 : 6);
    const norm_factors<T> factors{step.in(m, 1), step.in(m, 3), step.in(m, 4), epsilon};
    with_stored_type(step, stored_image, [&]<class Stored>(Stored) {
      const auto* const x = step.template in<const Stored>(m, 0);
      if (Phase + 1 == phases(step)) {
        if constexpr (Phase > 0 && forward) {
          batch_norm<T, Blocked>(units, e, x, factors, step.in(m, 2), epilogue());
        } else if constexpr (Phase > 0) {
          with_cotangent<Stored>(step, m, [&](const auto* dy) {
            batch_norm_gradient<T, Blocked>(units, e, x, dy, factors, first, second, epilogue());
          });
        }
        return;
      }
      if constexpr (Phase < 2) {
        norm_sums<T> sums{first, second};
        if (several) {
          const int channels = step.s.template as<norm_step>().channels;
          sums = {step.scratch(m), step.scratch(m) + channels, 2 * channels};
        }
        if constexpr (Phase == 0 && forward)
          sum_moments<T, Blocked>(units, e, x, sums);
        else if constexpr (Phase == 0)
          with_cotangent<Stored>(step, m, [&](const auto* dy) {
            sum_norm_gradients<T, Blocked>(units, e, x, dy, step.in(m, 3), sums);
          });
        if (Phase == 0 && several) return;
        if constexpr (forward)
          finish_moments<T, Blocked>(units, e, x, sums, first, second);
        else
          finish_norm_gradients<T, Blocked>(units, e, factors, sums, first, second);
      }
    });
  }
  /// Calls f with dy, of the type that is computed in or, like the image, of `Stored`.
  template <class Stored, class S, class F>
  static void with_cotangent(S step, const memory& m, F f) {
    with_constant(step, widens_cotangent, [&](auto widens) {
      f(step.template in<const std::conditional_t<widens, Stored, typename S::T>>(m, 2));
    });
  }
  static constexpr auto widens_cotangent = [](auto step) {
    return is_storage_only(step.s.template as<norm_step>().cotangent);
  };
  static constexpr auto stored_image = [](auto step) -> dtype {
    return step.s.template as<norm_step>().image;
  };
};

using norm_records = record_list<batch_norm_record<step_kind::batch_norm>,
                                 batch_norm_record<step_kind::batch_norm_gradient>>;

}  // namespace cella::cpu
