// What only moves elements: from layout to layout, to another order of axes, by index.
#pragma once

#include <cella/backend/cpu/lanes/layout.hpp>
#include <cella/backend/cpu/lower/record.hpp>
#include <cella/backend/cpu/rows/indexed_rows.hpp>
#include <cella/backend/cpu/rows/permute.hpp>
#include <cella/ops/indexing.hpp>
#include <cstring>

namespace cella::cpu {

template <class S>
constexpr lanes_image_extents lanes_image(S) {
  const auto e = S::s.template as<image_step>();
  return {e.samples, e.channels, e.height, e.width, e.border_height, e.border_width};
}

struct pack_record : record_for<step_kind::pack> {
  template <class S>
  static constexpr int units(S step, int) {
    return pack_lanes_units<typename S::T>(lanes_image(step));
  }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    pack_lanes(units, lanes_image(step), S::in(m, 0), S::out(m, 0));
  }
};

struct unpack_record : record_for<step_kind::unpack> {
  template <class S>
  static constexpr lanes_image_extents extents(S step) {
    lanes_image_extents e = lanes_image(step);
    e.padding_height = e.padding_width = 0;
    return e;
  }
  template <class S>
  static constexpr int units(S step, int) {
    return pack_lanes_units<typename S::T>(extents(step));
  }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    unpack_lanes(units, extents(step), S::in(m, 0), S::out(m, 0));
  }
};

/// Units: planes.
struct border_record : record_for<step_kind::border> {
  template <class S>
  static constexpr int units(S step, int) {
    const lanes_image_extents e = lanes_image(step);
    return lane_blocks<typename S::T>(e.samples) * e.channels;
  }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    add_border(units, lanes_image(step), S::in(m, 0), S::out(m, 0));
  }
};

struct copy_record : record_for<step_kind::copy> {
  template <int, class S>
  static void run(S, const memory& m, work_range, std::byte*) {
    std::memcpy(S::template out<std::byte>(m, 0), S::template in<const std::byte>(m, 0),
                std::size_t(S::s.template as<copy_step>().bytes));
  }
};

struct permute_record : record_for<step_kind::permute> {
  template <class S>
  static constexpr permutation_extents extents(S) {
    return permutation_of(S::operand(0).shape,
                          S::template options<transpose_op::options>().permutation);
  }
  /// Elements of the anchor's size, whatever they are.
  template <class S>
  using moved = element_of_size<size_of(S::anchor().type.element)>;
  template <class S>
  static constexpr int units(S step, int) {
    return permute_units<moved<S>>(extents(step));
  }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    permute(units, extents(step), S::template in<const moved<S>>(m, 0),
            S::template out<moved<S>>(m, 0));
  }
};

/// The element type of an operand of the anchor.
template <class S, int K>
using operand_element = element<S::operand(K).element>;

struct gather_record : record_for<step_kind::gather> {
  template <class S>
  static constexpr indexed_rows extents(S) {
    const tensor_type table = S::operand(0);
    return {table[0], table.shape.size(1, table.rank()), S::operand(1).size()};
  }
  static constexpr int units(auto step, int) { return gather_units(extents(step)); }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    gather_rows(units, extents(step), S::template in<const operand_element<S, 0>>(m, 0),
                S::template in<const operand_element<S, 1>>(m, 1),
                S::template out<operand_element<S, 0>>(m, 0));
  }
};

struct scatter_record : record_for<step_kind::scatter> {
  template <class S>
  static constexpr indexed_rows extents(S) {
    const tensor_type table = S::anchor().type;
    return {table[0], table.shape.size(1, table.rank()), S::operand(1).size()};
  }
  static constexpr int units(auto step, int) { return scatter_units(extents(step)); }
  static constexpr std::int64_t scratch_bytes(auto step) { return scatter_scratch(extents(step)); }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte* scratch) {
    scatter_rows<S::passes_caches()>(units, extents(step), S::in(m, 0),
                                     S::template in<const operand_element<S, 1>>(m, 1),
                                     S::out(m, 0), scratch);
  }
};

using movement_records = record_list<pack_record, unpack_record, border_record, copy_record,
                                     permute_record, gather_record, scatter_record>;

}  // namespace cella::cpu
