// Single elements that are moved by index, ones among zeros, rows combined by index, and products
// over the entries of sparse matrices.
#pragma once

#include <cella/backend/cpu/lower/movement.hpp>
#include <cella/backend/cpu/rows/indexed_elements.hpp>
#include <cella/backend/cpu/rows/reduced_rows.hpp>
#include <cella/backend/cpu/rows/sparse_rows.hpp>

namespace cella::cpu {

/// gather_elements and scatter_elements, whose tensors differ along their axis only.
struct elements_record : record_for<step_kind::elements> {
  static constexpr bool gathers(auto step) { return is<gather_elements_op>(step.anchor()); }
  static constexpr indexed_elements extents(auto step) {
    const tensor_type table = gathers(step) ? step.operand(0) : step.anchor().type;
    const int axis = gathers(step) ? step.template options<gather_elements_op::options>().axis
                                   : step.template options<scatter_elements_op::options>().axis;
    return {table.shape.size(0, axis), table[axis], step.operand(1)[axis],
            table.shape.size(axis + 1, table.rank())};
  }
  static constexpr int units(auto step, int) { return indexed_elements_units(extents(step)); }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    with_numbers(step, [&]<class N>() {
      with_indices(step, [&]<class Index>() {
        const N* const x = step.template in<const N>(m, 0);
        const Index* const indices = step.template in<const Index>(m, 1);
        N* const y = step.template out<N>(m, 0);
        with_constant(step, anchor_is<gather_elements_op>, [&](auto gathers) {
          if constexpr (gathers)
            gather_elements(units, extents(step), x, indices, y);
          else
            scatter_elements(units, extents(step), x, indices, y);
        });
      });
    });
  }
};

struct one_hot_record : record_for<step_kind::one_hot> {
  static constexpr std::int64_t depth(auto step) {
    return step.template options<one_hot_op::options>().depth;
  }
  static constexpr int units(auto step, int) {
    return one_hot_units(step.operand(0).size(), depth(step));
  }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    using T = typename S::T;
    with_numbers(step, [&]<class Index>() {
      if constexpr (!std::is_floating_point_v<Index>)
        one_hot(units, step.operand(0).size(), depth(step), step.template in<const Index>(m, 0),
                step.template out<T>(m, 0));
    });
  }
};

struct scatter_reduce_record : record_for<step_kind::scatter_reduce> {
  static constexpr indexed_rows extents(auto step) {
    return rows_along(step.anchor().type, 0, step.operand(1).size());
  }
  static constexpr int units(auto step, int) { return reduced_rows_units(extents(step)); }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    with_numbers(step, [&]<class N>() {
      with_indices(step, [&]<class Index>() {
        const auto run = [&](auto rule) {
          reduce_rows<rule>(units, extents(step), step.template in<const N>(m, 0),
                            step.template in<const Index>(m, 1), step.template out<N>(m, 0));
        };
        with_constant(step, combines<fold_rule::product>, [&](auto product) {
          if constexpr (product) {
            run(rule_constant<fold_rule::product>{});
          } else {
            with_constant(step, combines<fold_rule::largest>, [&](auto largest) {
              run(rule_constant < largest ? fold_rule::largest : fold_rule::smallest > {});
            });
          }
        });
      });
    });
  }

 private:
  template <fold_rule Rule>
  using rule_constant = std::integral_constant<fold_rule, Rule>;
  template <fold_rule Rule>
  static constexpr auto combines = [](auto step) {
    const auto how = options_of<scatter_reduce_op>(step).how();
    using mode = std::remove_const_t<decltype(how)>;
    return how == (Rule == fold_rule::product ? mode::multiply : mode::maximum);
  };
};

struct sparse_record : record_for<step_kind::sparse> {
  template <class S>
  static constexpr bool transposed(S step) {
    return options_of<csr_product_op>(step).transposed != 0;
  }
  /// The rows of the matrix are those of the result, of x or of a; its columns are the others.
  static constexpr sparse_rows extents(auto step) {
    const tensor_type x = step.operand(3), y = step.anchor().type;
    const bool product = is<csr_product_op>(step.anchor());
    return {step.operand(2).size() - 1, product && transposed(step) ? y[0] : x[0],
            step.operand(1).size(), x.shape.size(1, x.rank())};
  }
  static constexpr int units(auto step, int) {
    const sparse_rows e = extents(step);
    if (is<csr_entries_op>(step.anchor())) return sparse_entries_units(e);
    return transposed(step) ? sparse_transposed_units(e) : sparse_product_units(e);
  }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte*) {
    with_indices(step, [&]<class Index>() {
      const auto call = [&](auto kernel) {
        kernel(units, extents(step), step.in(m, 0), step.template in<const Index>(m, 1),
               step.template in<const Index>(m, 2), step.in(m, 3), step.out(m, 0));
      };
      using T = typename S::T;
      with_constant(step, anchor_is<csr_entries_op>, [&](auto entries) {
        if constexpr (entries) {
          call(&sparse_entries<T, Index>);
        } else {
          with_constant(step, is_transposed, [&](auto turned) {
            if constexpr (turned)
              call(&sparse_transposed<T, Index>);
            else
              call(&sparse_product<T, Index>);
          });
        }
      });
    });
  }

 private:
  static constexpr auto is_transposed = [](auto step) { return transposed(step); };
};

using element_records =
    record_list<elements_record, one_hot_record, scatter_reduce_record, sparse_record>;

}  // namespace cella::cpu
