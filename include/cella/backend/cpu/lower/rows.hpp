// Lines of a plain tensor along one axis: softmax, its logarithm, the loss, argmax and argmin; and
// along several that lie beside each other, products and what is of integers.
#pragma once

#include <cella/backend/cpu/lower/record.hpp>
#include <cella/backend/cpu/rows/best_position.hpp>
#include <cella/backend/cpu/rows/fold.hpp>
#include <cella/backend/cpu/rows/softmax.hpp>
#include <cella/backend/cpu/rows/softmax_rows.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/softmax.hpp>

namespace cella::cpu {

/// The anchor's first operand, seen as lines along an axis.
constexpr search_extents lines_along(auto step, int axis) {
  const tensor_type x = step.operand(0);
  return {x.shape.size(0, axis), x[axis], x.shape.size(axis + 1, x.rank())};
}
/// And along its own axis.
template <class S>
constexpr search_extents lines_of_operand(S step) {
  return lines_along(step, step.template options<cella::detail::axis_options>().axis);
}

struct softmax_record : record_for<step_kind::softmax> {
  template <class S>
  static constexpr softmax_extents extents(S step) {
    const search_extents e = lines_of_operand(step);
    return {e.outer, int(e.extent), e.inner};
  }
  template <class S>
  static constexpr int units(S step, int) {
    return softmax_units<typename S::T>(extents(step));
  }
  template <class S>
  static constexpr std::int64_t scratch_bytes(S step) {
    return rows_pass_caches(step) ? std::int64_t{sizeof(typename S::T)} * extents(step).extent : 0;
  }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte* scratch) {
    with_constant(step, is_logarithm, [&](auto logarithm) {
      with_constant(step, rows_pass_caches, [&](auto past) {
        softmax<logarithm, past>(units, extents(step), step.in(m, 0), step.out(m, 0),
                                 reinterpret_cast<typename S::T*>(scratch));
      });
    });
  }

 private:
  static constexpr auto is_logarithm = [](auto step) { return is<log_softmax_op>(step.anchor()); };
  static constexpr auto rows_pass_caches = [](auto step) {
    return step.passes_caches() && extents(step).inner == 1;
  };
};

/// The losses of the samples, then their sum.
struct cross_entropy_record : record_in<step_kind::cross_entropy, layout::plain> {
  static constexpr int most_phases = 2;
  static constexpr int phases(auto) { return 2; }
  template <class S>
  static constexpr int units(S step, int phase) {
    const auto e = step.s.template as<loss_step>();
    return phase == 1 ? 1 : softmax_rows_units({e.samples, e.classes});
  }
  template <int Phase, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    using T = typename S::T;
    const auto e = step.s.template as<loss_step>();
    T* const losses = step.scratch(m);
    if constexpr (Phase == 0) {
      const T scale = static_cast<T>(step.constant_factor(step.s.outputs[0].value));
      T* const gradient = step.s.output_count > 1 ? step.out(m, 1) : nullptr;
      softmax_cross_entropy_rows(units, {e.samples, e.classes}, step.in(m, 0),
                                 step.template in<const std::int32_t>(m, 1), scale, gradient,
                                 losses);
    } else {
      double total = 0;
      for (int i = 0; i < e.samples; ++i) total += double{losses[i]};
      *step.out(m, 0) = static_cast<T>(total);
    }
  }
};

struct best_position_record : record_for<step_kind::best_position> {
  template <int, class S>
  static void run(S step, const memory& m, work_range, std::byte*) {
    constexpr auto of_largest = [](auto s) { return is<argmax_op>(s.anchor()); };
    with_constant(step, of_largest, [&](auto largest) {
      best_positions<largest>(lines_of_operand(step), step.in(m, 0),
                              step.template out<std::int64_t>(m, 0));
    });
  }
};

struct fold_record : record_for<step_kind::fold> {
  static constexpr search_extents extents(auto step) {
    const shape s = step.operand(0).shape;
    const unsigned axes = step.template options<axes_options>().axes;
    const int first = std::countr_zero(axes), last = int(std::bit_width(axes));
    return {s.size(0, first), s.size(first, last), s.size(last, s.rank)};
  }
  static constexpr int units(auto step, int) { return fold_units(extents(step)); }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    with_type(step, [&]<class N>() {
      const auto fold = [&]<fold_rule Rule>() {
        fold_lines<Rule>(units, extents(step), step.template in<const N>(m, 0),
                         step.template out<N>(m, 0));
      };
      with_constant(step, anchor_is<prod_op>, [&](auto multiplies) {
        if constexpr (multiplies) {
          fold.template operator()<fold_rule::product>();
        } else if constexpr (!std::is_floating_point_v<N>) {
          with_constant(step, anchor_is<sum_op>, [&](auto adds) {
            if constexpr (adds)
              return fold.template operator()<fold_rule::sum>();
            else
              with_constant(step, anchor_is<max_op>, [&](auto largest) {
                fold.template operator()<largest ? fold_rule::largest : fold_rule::smallest>();
              });
          });
        }
      });
    });
  }

 private:
  static constexpr auto of_truths = [](auto step) {
    return step.operand(0).element == dtype::boolean;
  };
  /// Truth values are bytes.
  template <class S, class F>
  static void with_type(S step, F f) {
    with_constant(step, of_truths, [&](auto truths) {
      if constexpr (truths)
        f.template operator()<std::uint8_t>();
      else
        with_numbers(step, f);
    });
  }
};

using row_records =
    record_list<softmax_record, cross_entropy_record, best_position_record, fold_record>;

}  // namespace cella::cpu
