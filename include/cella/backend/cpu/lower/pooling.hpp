// Pooling of plain images; that of blocks of channels stands in blocks.hpp.
#pragma once

#include <cella/backend/cpu/convolution/pooling.hpp>
#include <cella/backend/cpu/lower/record.hpp>
#include <cella/ops/pooling.hpp>

namespace cella::cpu {

/// Units: planes. `ToImage`: windows are operand 0 and the image is the result.
template <step_kind Kind, bool ToImage>
struct pooling_record : record_for<Kind> {
  static constexpr pooling_extents extents(auto step) {
    const auto o = step.template options<pooling_options>();
    const tensor_type first = step.operand(0);
    const tensor_type image = ToImage ? step.anchor().type : first;
    const tensor_type windows = ToImage ? first : cella::detail::pooled(image, o);
    return {image[0] * image[1], image[2],          image[3],
            windows[2],          windows[3],        o.kernel,
            o.window.stride,     o.window.dilation, o.window.before,
            o.count_padding != 0};
  }
  static constexpr int units(auto step, int) { return extents(step).planes; }
};

struct max_pool_plain_record : pooling_record<step_kind::max_pool_plain, false> {
  template <int>
  static void run(auto step, const memory& m, work_range units, std::byte*) {
    const bool wanted = step.s.output_count > 1 && step.s.outputs[1].value >= 0;
    max_pool_planes(units, extents(step), step.in(m, 0), step.out(m, 0),
                    wanted ? step.template out<std::uint8_t>(m, 1) : nullptr);
  }
};
struct unpool_record : pooling_record<step_kind::unpool, true> {
  template <int>
  static void run(auto step, const memory& m, work_range units, std::byte*) {
    unpool_planes(units, extents(step), step.in(m, 0), step.template in<const std::uint8_t>(m, 1),
                  step.out(m, 0));
  }
};
struct pool_gather_record : pooling_record<step_kind::pool_gather, false> {
  template <int>
  static void run(auto step, const memory& m, work_range units, std::byte*) {
    pool_gather_planes(units, extents(step), step.in(m, 0),
                       step.template in<const std::uint8_t>(m, 1), step.out(m, 0));
  }
};
struct average_pool_record : pooling_record<step_kind::average_pool, false> {
  template <int>
  static void run(auto step, const memory& m, work_range units, std::byte*) {
    average_pool_planes(units, extents(step), step.in(m, 0), step.out(m, 0));
  }
};
struct average_spread_record : pooling_record<step_kind::average_spread, true> {
  template <int>
  static void run(auto step, const memory& m, work_range units, std::byte*) {
    average_spread_planes(units, extents(step), step.in(m, 0), step.out(m, 0));
  }
};

using pooling_records = record_list<max_pool_plain_record, unpool_record, pool_gather_record,
                                    average_pool_record, average_spread_record>;

}  // namespace cella::cpu
