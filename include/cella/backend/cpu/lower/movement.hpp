// What only moves elements: from layout to layout, to another order of axes, by index.
#pragma once

#include <cella/backend/cpu/lanes/layout.hpp>
#include <cella/backend/cpu/lower/record.hpp>
#include <cella/backend/cpu/rows/indexed_rows.hpp>
#include <cella/backend/cpu/rows/move.hpp>
#include <cella/backend/cpu/rows/permute.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/ops/put_rows.hpp>
#include <cstring>

namespace cella::cpu {

template <class S>
constexpr lanes_image_extents lanes_image(S step) {
  const auto e = step.s.template as<image_step>();
  return {e.samples, e.channels, e.height, e.width, e.border_height, e.border_width};
}

struct pack_record : record_for<step_kind::pack> {
  template <class S>
  static constexpr int units(S step, int) {
    return pack_lanes_units<typename S::T>(lanes_image(step));
  }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    pack_lanes(units, lanes_image(step), step.in(m, 0), step.out(m, 0));
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
    unpack_lanes(units, extents(step), step.in(m, 0), step.out(m, 0));
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
    add_border(units, lanes_image(step), step.in(m, 0), step.out(m, 0));
  }
};

struct copy_record : record_for<step_kind::copy> {
  template <int, class S>
  static void run(S step, const memory& m, work_range, std::byte*) {
    std::memcpy(step.template out<std::byte>(m, 0), step.template in<const std::byte>(m, 0),
                std::size_t(step.s.template as<copy_step>().bytes));
  }
};

/// Calls f.template operator()<Element>() for a type of the size of the anchor's elements, whatever
/// they are.
template <class S, class F>
constexpr decltype(auto) with_element_size(S step, F f) {
  if constexpr (S::compiled) {
    return f.template operator()<element_of_size<size_of(S::anchor().type.element)>>();
  } else {
    switch (size_of(step.anchor().type.element)) {
      case 1:
        return f.template operator()<element_of_size<1>>();
      case 2:
        return f.template operator()<element_of_size<2>>();
      case 4:
        return f.template operator()<element_of_size<4>>();
      default:
        return f.template operator()<element_of_size<8>>();
    }
  }
}

struct permute_record : record_for<step_kind::permute> {
  static constexpr permutation_extents extents(auto step) {
    return permutation_of(step.operand(0).shape,
                          step.template options<transpose_op::options>().permutation);
  }
  static constexpr int units(auto step, int) {
    return with_element_size(step,
                             [&]<class Moved>() { return permute_units<Moved>(extents(step)); });
  }
  template <int>
  static void run(auto step, const memory& m, work_range units, std::byte*) {
    with_element_size(step, [&]<class Moved>() {
      permute(units, extents(step), step.template in<const Moved>(m, 0),
              step.template out<Moved>(m, 0));
    });
  }
};

struct move_record : record_for<step_kind::move> {
  static constexpr box_extents extents(auto step) {
    return {step.s.loops, step.s.loop, step.s.reads[0].strides, step.s.outputs[0].strides};
  }
  static constexpr int units(auto step, int) {
    return with_element_size(step, [&]<class Moved>() { return move_units<Moved>(extents(step)); });
  }
  template <int>
  static void run(auto step, const memory& m, work_range units, std::byte*) {
    with_element_size(step, [&]<class Moved>() {
      const Moved* const x =
          step.s.read_count ? step.template first_read<const Moved>(m, 0) : nullptr;
      move_box(units, extents(step), x, step.template first_output<Moved>(m, 0));
    });
  }
};

/// Calls f.template operator()<Index>() for the type of the indices, operand 1 of the anchor: any
/// integers in programs, i32 or i64 in plans that are made at run time.
template <class S, class F>
void with_indices(S step, F f) {
  if constexpr (S::compiled)
    f.template operator()<element<S::operand(1).element>>();
  else if (step.operand(1).element == dtype::i32)
    f.template operator()<std::int32_t>();
  else
    f.template operator()<std::int64_t>();
}

/// Rows of a table along an axis, of which `count` are named.
constexpr indexed_rows rows_along(const tensor_type& table, int axis, std::int64_t count) {
  return {table[axis], table.shape.size(axis + 1, table.rank()), count, table.shape.size(0, axis)};
}

struct gather_record : record_for<step_kind::gather> {
  static constexpr indexed_rows extents(auto step) {
    return rows_along(step.operand(0),
                      step.template options<cella::detail::indexing_options>().axis,
                      step.operand(1).size());
  }
  static constexpr int units(auto step, int) { return gather_units(extents(step)); }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    using Row = typename S::template operand_type<0>;
    with_indices(step, [&]<class Index>() {
      gather_rows(units, extents(step), step.template in<const Row>(m, 0),
                  step.template in<const Index>(m, 1), step.template out<Row>(m, 0));
    });
  }
};

struct scatter_record : record_for<step_kind::scatter> {
  static constexpr indexed_rows extents(auto step) {
    return rows_along(step.anchor().type,
                      step.template options<cella::detail::indexing_options>().axis,
                      step.operand(1).size());
  }
  static constexpr int units(auto step, int) { return scatter_units(extents(step)); }
  static constexpr std::int64_t scratch_bytes(auto step) { return scatter_scratch(extents(step)); }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte* scratch) {
    const auto e = extents(step);
    with_indices(step, [&]<class Index>() {
      const Index* const indices = step.template in<const Index>(m, 1);
      const auto counted = [&]<class N>() {
        N* const table = step.template out<N>(m, 0);
        if constexpr (!S::compiled) {
          const node& x = step.g.nodes[std::size_t(step.g.operand(step.s.anchor, 0))];
          if (is<constant_op>(x)) {  // which has no memory: see loaded_planning
            const auto value = x.attributes.template as<constant_op::options>().value;
            return scatter_numbers(e, static_cast<N>(value), indices, table);
          }
        }
        scatter_numbers(e, step.template in<const N>(m, 0), indices, table);
      };
      with_constant(step, scatters<dtype::i32>, [&](auto words) {
        if constexpr (words)
          return counted.template operator()<std::int32_t>();
        else
          with_constant(step, scatters<dtype::i64>, [&](auto long_words) {
            if constexpr (long_words)
              counted.template operator()<std::int64_t>();
            else
              scatter_rows<S::passes_caches()>(units, e, step.in(m, 0), indices, step.out(m, 0),
                                               scratch);
          });
      });
    });
  }

 private:
  template <dtype Type>
  static constexpr auto scatters = [](auto step) { return step.operand(0).element == Type; };
};

/// In place, unless the value goes elsewhere.
struct put_rows_record : record_for<step_kind::put_rows> {
  static constexpr row_changes extents(auto step) {
    const auto o = step.template options<put_rows_op::options>();
    const tensor_type x = step.anchor().type;
    return {x.shape.size(0, o.axis), x[o.axis], x.shape.size(o.axis + 1, x.rank()),
            step.operand(1).size(), o.adds != 0};
  }
  static constexpr bool in_place(auto step) { return step.s.in[0] == step.s.outputs[0].at; }
  static constexpr int units(auto step, int) {
    return in_place(step) ? put_rows_units(extents(step)) : 1;
  }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    if (!in_place(step))
      std::memcpy(step.out(m, 0), step.in(m, 0), std::size_t(step.anchor().type.bytes()));
    with_indices(step, [&]<class Index>() {
      put_rows(units, extents(step), step.template in<const Index>(m, 1), step.in(m, 2),
               step.out(m, 0), in_place(step));
    });
  }
};

using movement_records =
    record_list<pack_record, unpack_record, border_record, copy_record, permute_record, move_record,
                gather_record, scatter_record, put_rows_record>;

}  // namespace cella::cpu
