// Images in blocks of channels: the records of all that is done to them.
#pragma once

#include <cella/backend/cpu/blocked/pool.hpp>
#include <cella/backend/cpu/lower/paired_convolutions.hpp>

namespace cella::cpu {

// ---- pooling

template <class S>
constexpr blocked_window pooled_window(S step) {
  const auto e = step.s.template as<pooling_step>();
  return {e.samples * (e.channels / S::L),
          e.height,
          e.width,
          e.kernel_height,
          e.kernel_width,
          e.stride_height,
          e.stride_width,
          e.padding_height,
          e.padding_width,
          e.out_height,
          e.out_width};
}

/// Maxima and, if somebody wants them, their positions.
struct max_pool_record : record_for<step_kind::max_pool> {
  static constexpr int units(auto step, int) { return pooled_window(step).planes; }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    typename S::T* const positions = step.s.output_count > 1 ? step.out(m, 1) : nullptr;
    blocked_max_pool<typename S::T>(units, pooled_window(step), step.in(m, 0), step.out(m, 0),
                                    positions);
  }
};

struct max_unpool_record : record_for<step_kind::max_unpool> {
  static constexpr int units(auto step, int) { return pooled_window(step).planes; }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    blocked_unpool<typename S::T, S::passes_caches()>(units, pooled_window(step), step.in(m, 0),
                                                      step.in(m, 1), step.out(m, 0));
  }
};

// ---- layouts. Units: planes of a block of channels

struct pack_blocks_record : record_for<step_kind::pack_blocks> {
  template <class S>
  static constexpr int units(S step, int) {
    const auto e = step.s.template as<image_step>();
    return e.samples * (e.channels / S::L);
  }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    const auto e = step.s.template as<image_step>();
    with_stored_value(step, [&]<class Stored>(Stored) {
      pack_blocks<typename S::T>(units, e.height * e.width, step.template in<const Stored>(m, 0),
                                 step.template out<Stored>(m, 0));
    });
  }
};

struct unpack_blocks_record : record_for<step_kind::unpack_blocks> {
  static constexpr int units(auto step, int) { return pack_blocks_record::units(step, 0); }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    const auto e = step.s.template as<image_step>();
    with_stored_value(step, [&]<class Stored>(Stored) {
      unpack_blocks<typename S::T>(units, e.height * e.width, step.template in<const Stored>(m, 0),
                                   step.template out<Stored>(m, 0));
    });
  }
};

using block_records =
    record_list<blocked_convolution_record, blocked_input_gradient_record,
                blocked_weight_gradient_record, paired_convolution_record<step_kind::convolution>,
                paired_convolution_record<step_kind::convolution_input_gradient>,
                paired_weight_gradient_record, winograd_record<step_kind::convolution>,
                winograd_record<step_kind::convolution_input_gradient>,
                winograd_weight_gradient_record, depthwise_record<step_kind::convolution>,
                depthwise_record<step_kind::convolution_input_gradient>,
                depthwise_record<step_kind::convolution_weight_gradient>, stem_record,
                stem_weight_gradient_record, max_pool_record, max_unpool_record, pack_blocks_record,
                unpack_blocks_record>;

}  // namespace cella::cpu
