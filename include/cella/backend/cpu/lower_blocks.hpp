// Steps whose images lie in blocks of channels.
#pragma once

#include <cella/backend/cpu/batch_norm.hpp>
#include <cella/backend/cpu/step_facts.hpp>
#include <cella/ops/batch_norm.hpp>

namespace cella::cpu {

template <class P, int I>
struct lowered_in_blocks : step_facts<P, I> {
  using facts = step_facts<P, I>;
  using facts::blocked_epilogue, facts::plain_epilogue;
  using facts::s, facts::g, facts::in_blocks, facts::extent;
  using typename facts::T;

  template <int Phase>
  static void run_blocks(const memory& m, work_range units, [[maybe_unused]] std::byte* scratch) {
    constexpr blocked_step<T> step{s};
    [[maybe_unused]] constexpr auto e = step.window();
    const auto in = [&](int k) { return m.at<T>(s.in[std::size_t(k)]); };
    const auto out = [&](int k) {
      return k < s.output_count ? m.at<T>(s.outputs[std::size_t(k)].at) : nullptr;
    };
    if constexpr (step.convolves() && step.stem()) {
      run_stem<Phase>(m, units);
    } else if constexpr (step.minimal()) {
      run_winograd<Phase>(m, units, scratch);
    } else if constexpr (step.depthwise()) {
      run_depthwise<Phase>(m, units);
    } else if constexpr (s.kind == step_kind::convolution && Phase == 0) {
      pack_filters<T>(units, e.in_blocks, e.taps(), in(1), in(3));
    } else if constexpr (s.kind == step_kind::convolution) {
      blocked_convolution<T>(units, e, in(0), in(3), blocked_epilogue(m));
    } else if constexpr (s.kind == step_kind::convolution_input_gradient && Phase == 0) {
      pack_filters_transposed<T>(units, e.in_blocks, e.out_blocks, e.taps(), in(1), in(3));
    } else if constexpr (s.kind == step_kind::convolution_input_gradient) {
      blocked_input_gradient<T>(units, e, in(0), in(3), blocked_epilogue(m));
    } else if constexpr (s.kind == step_kind::convolution_weight_gradient && Phase == 0) {
      blocked_weight_gradient<T>(units, e, in(0), in(1), in(3));
    } else if constexpr (s.kind == step_kind::convolution_weight_gradient) {
      finish_filters<T>(units, e, in(3), plain_epilogue(m));
    } else if constexpr (s.kind == step_kind::max_pool) {
      blocked_max_pool<T>(units, step.pooling(), in(0), out(0), out(1));
    } else if constexpr (s.kind == step_kind::max_unpool) {
      blocked_unpool<T, facts::passes_caches()>(units, step.pooling(), in(0), in(1), out(0));
    } else if constexpr (step.norms()) {
      run_batch_norm<Phase>(m, units);
    } else if constexpr (s.kind == step_kind::pack_blocks) {
      pack_blocks<T>(units, extent(2) * extent(3), in(0), out(0));
    } else {
      unpack_blocks<T>(units, extent(2) * extent(3), in(0), out(0));
    }
  }
  template <int Phase>
  static void run_batch_norm(const memory& m, work_range units) {
    constexpr norm_extents e = blocked_step<T>{s}.norm();
    constexpr T epsilon = static_cast<T>(
        g.nodes[std::size_t(s.anchor)].attributes.template as<batch_norm_options>().epsilon);
    const auto in = [&](int k) { return m.at<T>(s.in[std::size_t(k)]); };
    const auto epilogue = [&] {
      if constexpr (in_blocks)
        return blocked_epilogue(m);
      else
        return plain_epilogue(m);
    };
    // The last phase applies; before it, sums are taken, and finished, by themselves if there are
    // several slices.
    constexpr bool forward = s.kind == step_kind::batch_norm, several = e.slices() > 1;
    constexpr bool applies = Phase == (several ? 2 : 1);
    T* const first = in(forward ? 3 : 5);
    T* const second = in(forward ? 4 : 6);
    const norm_factors<T> factors{in(1), in(3), in(4), epsilon};
    if constexpr (applies && forward) {
      batch_norm<T, in_blocks>(units, e, in(0), factors, in(2), epilogue());
    } else if constexpr (applies) {
      batch_norm_gradient<T, in_blocks>(units, e, in(0), in(2), factors, first, second, epilogue());
    } else {
      norm_sums<T> sums{first, second};
      if constexpr (several) {
        T* const scratch = m.at<T>(s.scratch);
        sums = {scratch, scratch + extent(1), 2 * extent(1)};
      }
      if constexpr (Phase == 0 && forward)
        sum_moments<T, in_blocks>(units, e, in(0), sums);
      else if constexpr (Phase == 0)
        sum_norm_gradients<T, in_blocks>(units, e, in(0), in(2), in(3), sums);
      if constexpr ((Phase == 1 || !several) && forward)
        finish_moments<T, in_blocks>(units, e, in(0), sums, first, second);
      else if constexpr (Phase == 1 || !several)
        finish_norm_gradients<T, in_blocks>(units, e, factors, sums, first, second);
    }
  }
  /// A convolution or a gradient by Winograd's minimal filtering.
  template <int Phase>
  static void run_winograd(const memory& m, work_range units, [[maybe_unused]] std::byte* scratch) {
    constexpr blocked_step<T> step{s};
    constexpr auto e = step.window();
    const T* const first = m.at<const T>(s.in[0]);
    const T* const second = m.at<const T>(s.in[1]);
    T* const filters = m.at<T>(s.in[3]);
    if constexpr (step.weights() && Phase + 1 == step.phases())
      winograd::finish_gradient<T>(units, e, filters, plain_epilogue(m));
    else if constexpr (step.weights())
      winograd::sum_gradients<T>(
          units, e, Phase, first, second,
          s.scratch.valid() ? m.at<T>(s.scratch) : reinterpret_cast<T*>(scratch), filters);
    else if constexpr (Phase == 0)
      winograd::transform_filters<T, step.backward()>(units, e.in_blocks, e.out_blocks, second,
                                                      filters);
    else if constexpr (step.backward())
      winograd_input_gradient<T>(units, e, first, filters, blocked_epilogue(m), scratch);
    else
      winograd_convolution<T>(units, e, first, filters, blocked_epilogue(m), scratch);
  }
  template <int Phase>
  static void run_depthwise(const memory& m, work_range units) {
    constexpr blocked_step<T> step{s};
    constexpr auto e = step.window();
    const T* const first = m.at<const T>(s.in[0]);
    const T* const second = m.at<const T>(s.in[1]);
    T* const filters = m.at<T>(s.in[3]);
    if constexpr (step.weights() && Phase == 0)
      depthwise_weight_gradient<T>(units, e, first, second, filters);
    else if constexpr (step.weights())
      finish_stem_filters<T>(units, step.depthwise_filters(), filters, plain_epilogue(m));
    else if constexpr (Phase == 0)
      pack_stem_filters<T>(units, step.depthwise_filters(), second, filters);
    else if constexpr (step.backward())
      depthwise_input_gradient<T>(units, e, first, filters, blocked_epilogue(m));
    else
      depthwise_convolution<T>(units, e, first, filters, blocked_epilogue(m));
  }
  /// A convolution of a plain image of few channels, or the gradient of its filters.
  template <int Phase>
  static void run_stem(const memory& m, work_range units) {
    constexpr blocked_step<T> step{s};
    constexpr stem_extents e = step.stem_window();
    T* const padded = m.at<T>(s.scratch);
    T* const filters = m.at<T>(s.in[3]);
    if constexpr (Phase == (step.weights() ? 0 : 1))
      pad_stem<T>(units, e, m.at<const T>(s.in[0]), padded);
    else if constexpr (step.weights() && Phase == 1)
      stem_weight_gradient<T>(units, e, padded, m.at<const T>(s.in[1]), filters);
    else if constexpr (step.weights())
      finish_stem_filters<T>(units, e, filters, plain_epilogue(m));
    else if constexpr (Phase == 0)
      pack_stem_filters<T>(units, e, m.at<const T>(s.in[1]), filters);
    else
      stem_convolution<T>(units, e, padded, filters, blocked_epilogue(m));
  }
};

}  // namespace cella::cpu
