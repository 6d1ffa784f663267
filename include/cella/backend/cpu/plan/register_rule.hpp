// Which regions are so small that all their values fit registers: then a body is one straight line
// of code rather than a sequence of kernels.
#pragma once

#include <cella/backend/cpu/plan/element_map.hpp>
#include <cella/graph/freeze.hpp>
#include <cella/ops/control.hpp>
#include <cella/ops/elementwise.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/reduction.hpp>

namespace cella {

/// Answers for regions of a frozen graph.
template <class Graph>
class register_rule {
 public:
  static constexpr int most_elements = 64;  ///< of one value of floating-point numbers
  static constexpr int most_integers = 16;
  static constexpr int most_truths = 4;  ///< of one value; comparisons of vectors may be longer
  static constexpr int most_work = 1200;

  /// `element` is the program's number type.
  constexpr register_rule(const Graph& g, dtype element) : g_(g), element_(element) {}

  /// Whether region `r`, and all that it runs, can be one straight line of code.
  constexpr bool fits(int r) {
    work_ = 0;
    depth_ = 0;
    return region(r) && work_ <= most_work;
  }

  /// More truth values than `most_truths` are a mask: one lane for each lane of the numbers that
  /// were compared, of this type. `tuple`: node n is no mask.
  constexpr dtype mask_of(node_id n) const {
    const node& x = g_.nodes[std::size_t(n)];
    if (x.type.element != dtype::boolean || x.type.size() <= most_truths) return dtype::tuple;
    if (x.op == &input_info_of || x.op == &get_info_of) return element_;
    if (same_places(x)) return mask_of(g_.operand(n, 0));
    if (!x.op->pointwise) return dtype::tuple;
    for (node_id o : g_.operands(n)) {
      const dtype e = g_.type(o).element == dtype::boolean ? mask_of(o) : g_.type(o).element;
      if (e != dtype::tuple) return e;
    }
    return dtype::tuple;
  }
  /// One truth value repeated: it is held once.
  constexpr bool repeated_truth(node_id n) const {
    const node& x = g_.nodes[std::size_t(n)];
    return x.type.element == dtype::boolean && x.type.size() > 1 && is<broadcast_op>(x) &&
           g_.type(g_.operand(n, 0)).size() == 1;
  }

 private:
  constexpr bool region(int r) {
    if (r < 0 || ++depth_ > 8) return false;
    const frozen_region& x = g_.regions[std::size_t(r)];
    if (x.node_count > 2 * most_work) return false;
    for (node_id n = x.first_node; n < x.first_node + x.node_count; ++n) {
      if (!node_fits(n) || work_ > most_work) return false;
    }
    for (node_id n : g_.region_outputs(r)) {
      if (!plain(n)) return false;
    }
    --depth_;
    return true;
  }
  static constexpr bool same_places(const node& x) { return x.op->traits.alias; }
  /// Held as its type says.
  constexpr bool plain(node_id n) const {
    if (repeated_truth(n) || !type_fits(g_.type(n))) return false;
    const bool many = g_.type(n).element == dtype::boolean && g_.type(n).size() > most_truths;
    return !many || mask_of(n) == element_;
  }
  constexpr bool type_fits(const tensor_type& t) const {
    if (is_integer(t.element)) return t.size() >= 1 && t.size() <= most_integers;
    switch (t.element) {
      case dtype::f32:
      case dtype::f64:
        return t.size() >= 1 && t.size() <= most_elements;
      case dtype::boolean:
        return t.size() >= 1 && t.size() <= (is_number(element_) ? most_elements : most_truths);
      case dtype::record:
        return t.rank() == 0;
      default:
        return false;
    }
  }
  static constexpr bool is_number(dtype t) { return t == dtype::f32 || t == dtype::f64; }

  constexpr bool node_fits(node_id n) {
    const node& x = g_.nodes[std::size_t(n)];
    // About how many instructions: small tensors stand element by element.
    work_ += x.type.element == dtype::tuple
                 ? 0
                 : int(std::min<std::int64_t>(1 + x.type.size() / 4, 1 << 20));
    if (x.op == &input_info_of) return plain(n);
    if (x.op == &get_info_of) return plain(n);
    const bool mask = mask_of(n) != dtype::tuple;
    if (is<constant_op>(x) || is<values_op>(x) || is<iota_op>(x)) return plain(n);
    if (mask && same_places(x)) return true;
    if (x.op->kind == op_kind::control) return control(n);
    if (x.op->pointwise && !same_places(x)) return pointwise(n);
    if (is<cast_op>(x)) return cast(n);
    const bool extremum = is<max_op>(x) || is<min_op>(x);
    for (node_id o : g_.operands(n)) {
      if (!plain(o) || (mask_of(o) != dtype::tuple && !extremum)) return false;
    }
    if (moves_elements(x)) return (plain(n) || repeated_truth(n)) && x.operand_count <= 32;
    if (!plain(n) || mask) return false;
    const tensor_type first = g_.type(g_.operand(n, 0));
    if (is<sum_op>(x) || extremum) {
      work_ += int(first.size() / 2);
      return extremum || first.element != dtype::boolean;
    }
    if (is<matmul_op>(x)) {
      const std::array in{first, g_.type(g_.operand(n, 1))};
      const std::int64_t products = x.type.size() * contraction(x, in).terms();
      work_ += int(products / 2);
      return is_number(x.type.element) && products <= 2 * most_work;
    }
    return false;
  }
  constexpr bool pointwise(node_id n) const {
    const node& x = g_.nodes[std::size_t(n)];
    dtype numbers = dtype::tuple;
    if (x.type.element != dtype::boolean) numbers = x.type.element;
    const bool wide = x.type.size() > most_truths;
    for (node_id o : g_.operands(n)) {
      const dtype e = g_.type(o).element;
      if (e == dtype::boolean) {
        const dtype m = mask_of(o);
        if (m == dtype::tuple && !repeated_truth(o) && !plain(o)) return false;
        if (m != dtype::tuple) {
          if (numbers != dtype::tuple && numbers != m) return false;
          numbers = m;
        }
        if (repeated_truth(o) && !is<select_op>(x)) return false;
        if (wide && m == dtype::tuple && !repeated_truth(o)) return false;
        continue;
      }
      if (!plain(o) || (numbers != dtype::tuple && numbers != e)) return false;
      numbers = e;
    }
    if (is_integer(numbers) && !x.op->integral) return false;
    if (!wide) return true;
    if (x.type.element == dtype::boolean)
      return is_number(numbers) && x.type.size() <= most_elements;
    return is_number(numbers) || x.type.size() <= most_integers;
  }
  constexpr bool cast(node_id n) const {
    const node_id o = g_.operand(n, 0);
    const tensor_type to = g_.type(n);
    if (!plain(n) || repeated_truth(o)) return false;
    if (mask_of(o) != dtype::tuple) return to.element == mask_of(o);
    return plain(o) && to.size() <= most_truths;
  }
  constexpr bool control(node_id n) {
    const node& x = g_.nodes[std::size_t(n)];
    for (node_id o : g_.operands(n)) {
      if (!plain(o)) return false;
    }
    if (is<pack_op>(x)) return plain(n);
    for (int k = 0; k < x.result_count; ++k) {
      if (!type_fits(g_.result_type(n, k))) return false;
    }
    if (is<unpack_op>(x)) return true;
    if (is<cond_op>(x)) return region(x.regions[0]) && region(x.regions[1]);
    if (is<scan_op>(x) || is<call_op>(x)) return region(x.regions[0]);
    if (is<while_op>(x)) return region(x.regions[0]) && region(x.regions[1]);
    return false;
  }

  const Graph& g_;
  dtype element_;
  int work_{};
  int depth_{};
};

}  // namespace cella
