// Convolutions of images in blocks of channels, of each form, and their gradients.
#pragma once

#include <cella/backend/cpu/blocked/convolution.hpp>
#include <cella/backend/cpu/blocked/depthwise.hpp>
#include <cella/backend/cpu/blocked/stem.hpp>
#include <cella/backend/cpu/blocked/weight_gradient.hpp>
#include <cella/backend/cpu/blocked/winograd_weight_gradient.hpp>
#include <cella/backend/cpu/lower/record.hpp>

namespace cella::cpu {

/// A convolution of one form, or a gradient of one, in two phases: filters are packed into `in[3]`,
/// then used; or their gradients are summed there, then finished.
template <step_kind Kind, convolution_form Form>
struct blocked_record : kernel_record {
  static constexpr bool matches(const plan_step& s) { return s.kind == Kind && has_form(s, Form); }
  static constexpr int most_phases = 2;
  static constexpr int phases(auto) { return 2; }
  static constexpr bool prepares(auto step) {
    return Kind != step_kind::convolution_weight_gradient &&
           step.s.template as<convolution_step>().keeps_filters;
  }

 protected:
  static constexpr bool backward = Kind == step_kind::convolution_input_gradient;

  /// `Extents` of channels in blocks, or, of a stem, one by one.
  template <class S, class Extents = blocked_convolution_extents>
  static constexpr Extents window(S step) {
    const auto e = step.s.template as<convolution_step>();
    constexpr int block = std::is_same_v<Extents, stem_extents> ? 1 : S::L;
    const auto result = [](int extent, int kernel, int stride, int padding) {
      return (extent + 2 * padding - kernel) / stride + 1;
    };
    return {e.samples,
            e.channels / block,
            e.height,
            e.width,
            e.filters / S::L,
            e.kernel_height,
            e.kernel_width,
            e.stride_height,
            e.stride_width,
            e.padding_height,
            e.padding_width,
            result(e.height, e.kernel_height, e.stride_height, e.padding_height),
            result(e.width, e.kernel_width, e.stride_width, e.padding_width)};
  }
  template <class S>
  static auto* filters(S step, const memory& m) {
    return step.template in<typename S::T>(m, 3);
  }
};

// ---- direct

struct blocked_convolution_record
    : blocked_record<step_kind::convolution, convolution_form::direct> {
  template <class S>
  static constexpr int units(S step, int phase) {
    const auto e = window(step);
    return phase == 0 ? e.out_blocks : blocked_convolution_units<typename S::T>(e);
  }
  template <int Phase, class S>
  static void run(S step, const memory& m, work_range units, [[maybe_unused]] std::byte* scratch) {
    using T = typename S::T;
    const auto e = window(step);
    if constexpr (Phase == 0)
      pack_filters<T>(units, e.in_blocks, e.taps(), step.in(m, 1), filters(step, m));
    else
      blocked_convolution<T>(units, e, step.in(m, 0), filters(step, m),
                             step.blocked_epilogue(m, scratch));
  }
};

struct blocked_input_gradient_record
    : blocked_record<step_kind::convolution_input_gradient, convolution_form::direct> {
  template <class S>
  static constexpr int units(S step, int phase) {
    const auto e = window(step);
    return phase == 0 ? e.in_blocks : blocked_input_gradient_units<typename S::T>(e);
  }
  template <int Phase, class S>
  static void run(S step, const memory& m, work_range units, [[maybe_unused]] std::byte* scratch) {
    using T = typename S::T;
    const auto e = window(step);
    if constexpr (Phase == 0) {
      pack_filters_transposed<T>(units, e.in_blocks, e.out_blocks, e.taps(), step.in(m, 1),
                                 filters(step, m));
    } else {
      blocked_input_gradient<T>(units, e, step.in(m, 0), filters(step, m),
                                step.blocked_epilogue(m, scratch));
    }
  }
};

struct blocked_weight_gradient_record
    : blocked_record<step_kind::convolution_weight_gradient, convolution_form::direct> {
  template <class S>
  static constexpr int units(S step, int phase) {
    const auto e = window(step);
    return phase == 0 ? blocked_weight_gradient_units<typename S::T>(e) : e.out_blocks;
  }
  template <int Phase, class S>
  static void run(S step, const memory& m, work_range units, [[maybe_unused]] std::byte* scratch) {
    using T = typename S::T;
    const auto e = window(step);
    if constexpr (Phase == 0)
      blocked_weight_gradient<T>(units, e, step.in(m, 0), step.in(m, 1), filters(step, m));
    else
      finish_filters<T>(units, e, filters(step, m), step.plain_epilogue(m, scratch));
  }
};

// ---- by Winograd's minimal filtering

template <step_kind Kind>
struct winograd_record : blocked_record<Kind, convolution_form::winograd> {
  using base = blocked_record<Kind, convolution_form::winograd>;
  static constexpr bool backward = base::backward;

  template <class S>
  static constexpr int units(S step, int phase) {
    const auto e = base::window(step);
    if (phase == 0) return backward ? e.in_blocks : e.out_blocks;
    return backward ? winograd::units<typename S::T>(winograd::backward_tiles(e), e.out_blocks,
                                                     e.in_blocks)
                    : winograd::units<typename S::T>(winograd::forward_tiles(e), e.in_blocks,
                                                     e.out_blocks);
  }
  template <class S>
  static constexpr std::int64_t scratch_bytes(S step) {
    const auto e = base::window(step);
    return backward ? winograd::scratch<typename S::T>(winograd::backward_tiles(e), e.out_blocks,
                                                       e.in_blocks)
                    : winograd::scratch<typename S::T>(winograd::forward_tiles(e), e.in_blocks,
                                                       e.out_blocks);
  }
  template <int Phase, class S>
  static void run(S step, const memory& m, work_range units, std::byte* scratch) {
    using T = typename S::T;
    const auto e = base::window(step);
    T* const filters = base::filters(step, m);
    if constexpr (Phase == 0)
      winograd::transform_filters<T, backward>(units, e.in_blocks, e.out_blocks, step.in(m, 1),
                                               filters);
    else if constexpr (backward)
      winograd_input_gradient<T>(units, e, step.in(m, 0), filters,
                                 step.blocked_epilogue(m, scratch), scratch);
    else
      winograd_convolution<T>(units, e, step.in(m, 0), filters, step.blocked_epilogue(m, scratch),
                              scratch);
  }
};

/// Transforms and sums, maybe a chunk of tiles after the other, then finishes.
struct winograd_weight_gradient_record
    : blocked_record<step_kind::convolution_weight_gradient, convolution_form::winograd> {
  static constexpr int most_phases = 2 * winograd::most_chunks + 1;
  template <class S>
  static constexpr int phases(S step) {
    return winograd::gradient_phases<typename S::T>(window(step)) + 1;
  }
  template <class S>
  static constexpr int units(S step, int phase) {
    const auto e = window(step);
    if (phase + 1 == phases(step)) return e.out_blocks;
    return winograd::gradient_phase_units<typename S::T>(e, phase);
  }
  /// With several slices each thread transforms tiles of its own.
  template <class S>
  static constexpr std::int64_t scratch_bytes(S step) {
    using T = typename S::T;
    const auto e = window(step);
    if (winograd::gradient_slices<T>(e) == 1) return 0;
    return winograd::gradient_tiles_size<T>(e) * std::int64_t{sizeof(T)};
  }
  template <int Phase, class S>
  static void run(S step, const memory& m, work_range units, std::byte* scratch) {
    using T = typename S::T;
    const auto e = window(step);
    with_constant(step, is_last<Phase>, [&](auto last) {
      if constexpr (last) {
        winograd::finish_gradient<T>(units, e, filters(step, m), step.plain_epilogue(m, scratch));
      } else {
        T* const tiles = step.s.scratch.valid() ? step.scratch(m) : reinterpret_cast<T*>(scratch);
        winograd::sum_gradients<T>(units, e, Phase, step.in(m, 0), step.in(m, 1), tiles,
                                   filters(step, m));
      }
    });
  }

 private:
  template <int Phase>
  static constexpr auto is_last = [](auto step) { return Phase + 1 == phases(step); };
};

// ---- depthwise

template <step_kind Kind>
struct depthwise_record : blocked_record<Kind, convolution_form::depthwise> {
  using base = blocked_record<Kind, convolution_form::depthwise>;
  static constexpr bool weights = Kind == step_kind::convolution_weight_gradient;

  static constexpr int units(auto step, int phase) {
    const auto e = base::window(step);
    return phase == 1 && !weights ? depthwise_units(e) : e.in_blocks;
  }
  template <int Phase, class S>
  static void run(S step, const memory& m, work_range units, [[maybe_unused]] std::byte* scratch) {
    using T = typename S::T;
    const auto e = base::window(step);
    T* const filters = base::filters(step, m);
    if constexpr (weights && Phase == 0)
      depthwise_weight_gradient<T>(units, e, step.in(m, 0), step.in(m, 1), filters);
    else if constexpr (weights)
      finish_stem_filters<T>(units, one_channel(e), filters, step.plain_epilogue(m, scratch));
    else if constexpr (Phase == 0)
      pack_stem_filters<T>(units, one_channel(e), step.in(m, 1), filters);
    else if constexpr (base::backward)
      depthwise_input_gradient<T>(units, e, step.in(m, 0), filters,
                                  step.blocked_epilogue(m, scratch));
    else
      depthwise_convolution<T>(units, e, step.in(m, 0), filters, step.blocked_epilogue(m, scratch));
  }

 private:
  /// The filters, of one channel each, as a stem's.
  static constexpr stem_extents one_channel(const blocked_convolution_extents& e) {
    stem_extents f;
    f.channels = 1;
    f.out_blocks = e.out_blocks;
    f.kernel_height = e.kernel_height;
    f.kernel_width = e.kernel_width;
    return f;
  }
};

// ---- of a plain image of few channels, which gets a border first

struct stem_record : blocked_record<step_kind::convolution, convolution_form::stem> {
  static constexpr int most_phases = 3;
  static constexpr int phases(auto) { return 3; }
  template <class S>
  static constexpr int units(S step, int phase) {
    const stem_extents e = extents(step);
    if (phase == 0) return e.out_blocks;
    if (phase == 1) return e.as_it_is ? 0 : e.samples * e.channels;
    return stem_units<typename S::T>(e);
  }
  template <int Phase, class S>
  static void run(S step, const memory& m, work_range units, [[maybe_unused]] std::byte* scratch) {
    using T = typename S::T;
    const stem_extents e = extents(step);
    if constexpr (Phase == 0)
      pack_stem_filters<T>(units, e, step.in(m, 1), filters(step, m));
    else if constexpr (Phase == 1)
      pad_stem<T>(units, e, step.in(m, 0), step.scratch(m));
    else
      stem_convolution<T>(units, e, e.as_it_is ? step.in(m, 0) : step.scratch(m), filters(step, m),
                          step.blocked_epilogue(m, scratch));
  }

 private:
  /// The planner has a place for a copy where the image does not serve as it is.
  template <class S>
  static constexpr stem_extents extents(S step) {
    stem_extents e = window<S, stem_extents>(step);
    e.as_it_is = !step.s.scratch.valid();
    return e;
  }
};

struct stem_weight_gradient_record
    : blocked_record<step_kind::convolution_weight_gradient, convolution_form::stem> {
  static constexpr int most_phases = 3;
  static constexpr int phases(auto) { return 3; }
  template <class S>
  static constexpr int units(S step, int phase) {
    const auto e = window<S, stem_extents>(step);
    if (phase == 0) return e.samples * e.channels;
    return phase == 1 ? stem_gradient_units<typename S::T>(e) : e.out_blocks;
  }
  template <int Phase, class S>
  static void run(S step, const memory& m, work_range units, [[maybe_unused]] std::byte* scratch) {
    using T = typename S::T;
    const auto e = window<S, stem_extents>(step);
    if constexpr (Phase == 0)
      pad_stem<T>(units, e, step.in(m, 0), step.scratch(m));
    else if constexpr (Phase == 1)
      stem_weight_gradient<T>(units, e, step.scratch(m), step.in(m, 1), filters(step, m));
    else
      finish_stem_filters<T>(units, e, filters(step, m), step.plain_epilogue(m, scratch));
  }
};

}  // namespace cella::cpu
