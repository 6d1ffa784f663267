// Boxes: which elements of each value differ from zero and are read by anybody, as one box per
// value, through loops too. A derivative by one element, or one step of a sequence that is wanted,
// leaves most of the others out.
#pragma once

#include <algorithm>
#include <cella/ops/activation.hpp>
#include <cella/ops/control.hpp>
#include <cella/ops/elementwise.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/slicing.hpp>

namespace cella {

/// Elements [first, last) along each axis; or none at all.
struct box {
  bool empty = true;
  int rank{};
  std::array<std::int32_t, max_rank> first{}, last{};

  static constexpr box whole(const shape& s) {
    box w;
    w.empty = s.size() == 0;
    w.rank = s.rank;
    for (int d = 0; d < s.rank; ++d) w.last[std::size_t(d)] = s[d];
    return w;
  }
  constexpr shape extents() const {
    shape s;
    for (int d = 0; d < rank; ++d) s.push_back(last[std::size_t(d)] - first[std::size_t(d)]);
    return s;
  }
  constexpr std::int64_t size() const { return empty ? 0 : extents().size(); }
  /// Gives one axis another range.
  constexpr void set(int axis, std::int32_t from, std::int32_t to) {
    first[std::size_t(axis)] = from;
    last[std::size_t(axis)] = to;
    empty = empty || to <= from;
  }
  constexpr box moved(const std::array<std::int32_t, max_rank>& by, int sign) const {
    box w = *this;
    for (int d = 0; d < rank; ++d)
      w.set(d, first[std::size_t(d)] + sign * by[std::size_t(d)],
            last[std::size_t(d)] + sign * by[std::size_t(d)]);
    return w;
  }
  /// With one more leading axis of so many elements, or without the leading axis.
  constexpr box with_leading(int extent) const {
    box w;
    w.empty = empty;
    w.rank = rank + 1;
    w.set(0, 0, extent);
    for (int d = 0; d < rank; ++d) w.set(d + 1, first[std::size_t(d)], last[std::size_t(d)]);
    return w;
  }
  constexpr box without_leading() const {
    box w;
    w.empty = empty;
    w.rank = rank - 1;
    for (int d = 1; d < rank; ++d) w.set(d - 1, first[std::size_t(d)], last[std::size_t(d)]);
    return w;
  }

  friend constexpr box common(const box& a, const box& b) {
    box w = a;
    w.empty = a.empty || b.empty;
    for (int d = 0; d < a.rank && !w.empty; ++d) {
      const auto i = std::size_t(d);
      w.set(d, std::max(a.first[i], b.first[i]), std::min(a.last[i], b.last[i]));
    }
    return w;
  }
  /// The smallest box round both.
  friend constexpr box hull(const box& a, const box& b) {
    if (a.empty) return b;
    if (b.empty) return a;
    box w = a;
    for (int d = 0; d < a.rank; ++d) {
      const auto i = std::size_t(d);
      w.set(d, std::min(a.first[i], b.first[i]), std::max(a.last[i], b.last[i]));
    }
    return w;
  }
  friend constexpr bool operator==(const box& a, const box& b) {
    return a.empty == b.empty && (a.empty || (a.first == b.first && a.last == b.last));
  }
};

/// Pointwise operations that make zero of zeros.
inline constexpr std::array<const op_info*, 29> zero_of_zeros{
    &info_of<add_op>,     &info_of<sub_op>,     &info_of<neg_op>,         &info_of<identity_op>,
    &info_of<abs_op>,     &info_of<sign_op>,    &info_of<square_op>,      &info_of<sqrt_op>,
    &info_of<maximum_op>, &info_of<minimum_op>, &info_of<relu_op>,        &info_of<gelu_tanh_op>,
    &info_of<expm1_op>,   &info_of<log1p_op>,   &info_of<sin_op>,         &info_of<tan_op>,
    &info_of<asin_op>,    &info_of<atan_op>,    &info_of<sinh_op>,        &info_of<tanh_op>,
    &info_of<asinh_op>,   &info_of<atanh_op>,   &info_of<erf_op>,         &info_of<not_equal_op>,
    &info_of<less_op>,    &info_of<greater_op>, &info_of<logical_and_op>, &info_of<logical_or_op>,
    &info_of<select_op>};

/// Finds the boxes of a graph that is pruned. Elements outside of one are zero, or nobody reads
/// them. What a zero multiplies counts as zero, infinite and NaN factors included: zeros that the
/// graph itself shows stand for "does not depend".
class box_finder {
 public:
  explicit constexpr box_finder(const graph& g)
      : g_(g),
        users_(g.regions.size(), 0),
        holds_(g.nodes.size()),
        read_(g.nodes.size()),
        result_holds_(g.results.size()),
        result_read_(g.results.size()) {
    for (const region& r : g.regions) {
      for (node_id n : r.nodes) {
        for (int used : g.nodes[std::size_t(n)].regions) {
          if (used >= 0) ++users_[std::size_t(used)];
        }
      }
    }
    for (node_id n : g.regions[0].inputs) holds_[std::size_t(n)] = box::whole(shape_of(n));
    find_values(0);
    for (node_id n : g.regions[0].outputs) read(n, box::whole(shape_of(n)));
    find_reads(0);
  }

  constexpr box of(node_id n) const {
    return common(read_[std::size_t(n)], holds_[std::size_t(n)]);
  }
  constexpr box of_result(node_id n, int k) const {
    return common(result_read_[result(n, k)], result_holds_[result(n, k)]);
  }
  /// Whether a node is a loop whose body runs nowhere else: only such a body can be changed.
  constexpr bool owns_body(node_id n) const {
    const node& x = g_.nodes[std::size_t(n)];
    return is<scan_op>(x) && x.attributes.as<scan_options>().length > 0 &&
           users_[std::size_t(x.regions[0])] == 1;
  }
  /// Whether a node can compute a part of its result from parts of its operands.
  constexpr bool has_parts(node_id n) const {
    const node& x = g_.nodes[std::size_t(n)];
    if (x.op == &get_info_of) return owns_body(g_.operand(n, 0));
    return x.op->pointwise || is<constant_op>(x) || is<cast_op>(x) || is<concat_op>(x) ||
           is<broadcast_op>(x) || is<transpose_op>(x) || sums(n) || moves(n);
  }
  /// Whether a node is a sum or a product.
  constexpr bool sums(node_id n) const {
    const node& x = g_.nodes[std::size_t(n)];
    return is<sum_op>(x) || (is<matmul_op>(x) && space_of(n).factors <= max_rank);
  }
  /// Whether a node is a slice, or an embed, without steps.
  constexpr bool moves(node_id n) const {
    const node& x = g_.nodes[std::size_t(n)];
    if (!is<slice_op>(x) && !is<scatter_slice_op>(x)) return false;
    const auto o = x.attributes.as<slice_op::options>();
    for (int d = 0; d < x.type.rank(); ++d) {
      if (o.step[std::size_t(d)] != 1) return false;
    }
    return true;
  }
  /// What operand k of a node that has parts must hold for box `w` of the result.
  constexpr box operand_box(node_id n, int k, const box& w) const {
    const node& x = g_.nodes[std::size_t(n)];
    const shape s = shape_of(g_.operand(n, k));
    if (moves(n)) {
      const auto by = x.attributes.as<slice_op::options>().start;
      return is<slice_op>(x) ? w.moved(by, 1) : common(w.moved(by, -1), box::whole(s));
    }
    if (is<concat_op>(x)) return common(w.moved(place_in_concat(n, k), -1), box::whole(s));
    box in = box::whole(s);
    in.empty = in.empty || w.empty;
    if (is<broadcast_op>(x)) {
      const auto axes = x.attributes.as<broadcast_op::options>().axes;
      for (int d = 0; d < s.rank; ++d) take(in, d, w, axes[std::size_t(d)]);
      return in;
    }
    if (is<transpose_op>(x)) {
      const auto p = x.attributes.as<transpose_op::options>().permutation;
      for (int d = 0; d < s.rank; ++d) take(in, p[std::size_t(d)], w, d);
      return in;
    }
    if (!sums(n)) return w;
    // Where the result walks, what is wanted; where it sums, what is not zero.
    const iteration_space loops = space_of(n);
    box points = points_of(n, loops);
    for (int d = 0; d < w.rank; ++d) {
      const auto i = std::size_t(d);
      points.set(loops.result[i], w.first[i], w.last[i]);
    }
    for (int d = 0; d < s.rank; ++d)
      take(in, d, points, loops.operands[std::size_t(k)][std::size_t(d)]);
    in.empty = in.empty || points.empty;
    return in;
  }
  /// Where operand k begins in a concatenation.
  constexpr std::array<std::int32_t, max_rank> place_in_concat(node_id n, int k) const {
    const int axis = g_.nodes[std::size_t(n)].attributes.as<concat_op::options>().axis;
    std::array<std::int32_t, max_rank> at{};
    for (int i = 0; i < k; ++i) at[std::size_t(axis)] += shape_of(g_.operand(n, i))[axis];
    return at;
  }

 private:
  /// A loop is followed for so many turns; what still grows then may reach everything.
  static constexpr int most_turns = 64;

  constexpr shape shape_of(node_id n) const { return g_.nodes[std::size_t(n)].type.shape; }
  constexpr std::size_t result(node_id n, int k) const {
    return std::size_t(g_.nodes[std::size_t(n)].first_result + k);
  }
  constexpr void read(node_id n, const box& w) {
    read_[std::size_t(n)] = hull(read_[std::size_t(n)], w);
  }
  static constexpr void take(box& to, int axis, const box& from, int other) {
    to.set(axis, std::max(to.first[std::size_t(axis)], from.first[std::size_t(other)]),
           std::min(to.last[std::size_t(axis)], from.last[std::size_t(other)]));
  }
  constexpr iteration_space space_of(node_id n) const {
    list<tensor_type> types;
    for (node_id o : g_.operands(n)) types.push_back(g_.type(o));
    const node& x = g_.nodes[std::size_t(n)];
    return x.op->space(types, x.attributes);
  }
  /// The loops of a sum or a product, where no operand is zero; as a box whose axes are loops.
  constexpr box points_of(node_id n, const iteration_space& loops) const {
    box points;
    points.empty = false;
    for (int f = 0; f < loops.factors; ++f) {
      ++points.rank;
      points.set(f, 0, std::int32_t(loops.extents[std::size_t(f)]));
    }
    const auto in = g_.operands(n);
    for (std::size_t k = 0; k < in.size(); ++k) {
      const box& w = holds_[std::size_t(in[k])];
      points.empty = points.empty || w.empty;
      for (int d = 0; d < w.rank; ++d) take(points, loops.operands[k][std::size_t(d)], w, d);
    }
    return points;
  }

  // ---- what is not zero

  constexpr void find_values(int r) {
    for (node_id n : g_.regions[std::size_t(r)].nodes) {
      if (g_.nodes[std::size_t(n)].op != &input_info_of) holds_[std::size_t(n)] = value(n);
    }
  }
  constexpr box value(node_id n) {
    const node& x = g_.nodes[std::size_t(n)];
    const box all = box::whole(x.type.shape);
    const auto in = [&](int k) -> const box& { return holds_[std::size_t(g_.operand(n, k))]; };
    if (x.result_count > 0) {
      for (int k = 0; k < x.result_count; ++k)
        result_holds_[result(n, k)] = box::whole(g_.result_type(n, k).shape);
      if (owns_body(n)) values_of_loop(n);
      return all;
    }
    if (x.op == &get_info_of)
      return result_holds_[result(g_.operand(n, 0), x.attributes.as<get_attributes>().result)];
    if (is<constant_op>(x)) return x.attributes.as<constant_op::options>().value == 0 ? box() : all;
    if (is<mul_op>(x) || is<relu_gradient_op>(x)) return common(in(0), in(1));
    if (is<div_op>(x) || is<cast_op>(x)) return in(0);
    if (x.op->pointwise) {
      const bool keeps =
          std::find(zero_of_zeros.begin(), zero_of_zeros.end(), x.op) != zero_of_zeros.end();
      return keeps ? hull_of_operands(n) : all;
    }
    if (moves(n)) {
      const auto by = x.attributes.as<slice_op::options>().start;
      return common(in(0).moved(by, is<slice_op>(x) ? -1 : 1), all);
    }
    if (is<concat_op>(x)) {
      box w;
      for (int k = 0; k < x.operand_count; ++k) w = hull(w, in(k).moved(place_in_concat(n, k), 1));
      return w;
    }
    box w = all;
    if (is<broadcast_op>(x)) {
      const auto axes = x.attributes.as<broadcast_op::options>().axes;
      for (int d = 0; d < in(0).rank; ++d) take(w, axes[std::size_t(d)], in(0), d);
      w.empty = w.empty || in(0).empty;
    } else if (is<transpose_op>(x)) {
      const auto p = x.attributes.as<transpose_op::options>().permutation;
      for (int d = 0; d < w.rank; ++d) take(w, d, in(0), p[std::size_t(d)]);
      w.empty = w.empty || in(0).empty;
    } else if (sums(n)) {
      const iteration_space loops = space_of(n);
      const box points = points_of(n, loops);
      for (int d = 0; d < w.rank; ++d) take(w, d, points, loops.result[std::size_t(d)]);
      w.empty = w.empty || points.empty;
    } else if (is<reshape_op>(x)) {
      w.empty = w.empty || in(0).empty;
    }
    return w;
  }
  constexpr box hull_of_operands(node_id n) const {
    box w;
    for (node_id o : g_.operands(n)) w = hull(w, holds_[std::size_t(o)]);
    return w;
  }
  /// Carries hold what they held before any turn.
  constexpr void values_of_loop(node_id n) {
    const node& x = g_.nodes[std::size_t(n)];
    const auto o = x.attributes.as<scan_options>();
    const region& body = g_.regions[std::size_t(x.regions[0])];
    list<box> carries;
    for (int k = 0; k < x.operand_count; ++k) {
      const box& w = holds_[std::size_t(g_.operand(n, k))];
      if (k < o.carries) carries.push_back(w);
      const bool sliced = k >= o.carries && k < o.carries + o.xs;
      holds_[std::size_t(body.inputs[std::size_t(k)])] = sliced ? w.without_leading() : w;
    }
    bool grows = true;
    for (int turn = 0; turn < o.length && grows; ++turn) {
      for (std::size_t k = 0; k < carries.size(); ++k)
        holds_[std::size_t(body.inputs[k])] = carries[k];
      find_values(x.regions[0]);
      grows = false;
      for (std::size_t k = 0; k < carries.size(); ++k)
        grows |= grow(carries[k], holds_[std::size_t(body.outputs[k])], turn, body.inputs[k]);
    }
    for (int k = 0; k < x.result_count; ++k) {
      result_holds_[result(n, k)] =
          k < o.carries ? carries[std::size_t(k)]
                        : holds_[std::size_t(body.outputs[std::size_t(k)])].with_leading(o.length);
    }
  }
  /// Adds `more` to a carry's box; whether that changed it.
  constexpr bool grow(box& w, const box& more, int turn, node_id carry) const {
    const box before = w;
    w = hull(w, more);
    if (w == before) return false;
    if (turn >= most_turns) w = box::whole(shape_of(carry));
    return true;
  }

  // ---- what is read

  constexpr void find_reads(int r) {
    const ids& nodes = g_.regions[std::size_t(r)].nodes;
    for (std::size_t i = nodes.size(); i-- > 0;) {
      const node_id n = nodes[i];
      const node& x = g_.nodes[std::size_t(n)];
      if (x.op == &input_info_of) continue;
      if (x.result_count > 0 && owns_body(n)) {
        reads_of_loop(n);
      } else if (x.op == &get_info_of) {
        const std::size_t k = result(g_.operand(n, 0), x.attributes.as<get_attributes>().result);
        result_read_[k] = hull(result_read_[k], of(n));
      } else {
        const bool parts = x.result_count == 0 && has_parts(n);
        if (parts && of(n).empty) continue;
        for (int k = 0; k < x.operand_count; ++k) {
          const node_id in = g_.operand(n, k);
          read(in, parts ? operand_box(n, k, of(n)) : box::whole(shape_of(in)));
        }
      }
    }
  }
  /// A carry is wanted wherever it is after any turn.
  constexpr void reads_of_loop(node_id n) {
    const node& x = g_.nodes[std::size_t(n)];
    const auto o = x.attributes.as<scan_options>();
    const region& body = g_.regions[std::size_t(x.regions[0])];
    list<box> carries;
    for (int k = 0; k < o.carries; ++k) carries.push_back(of_result(n, k));
    bool grows = true;
    for (int turn = 0; turn < o.length && grows; ++turn) {
      forget_reads(x.regions[0]);
      for (int k = 0; k < x.result_count; ++k)
        read(body.outputs[std::size_t(k)],
             k < o.carries ? carries[std::size_t(k)] : of_result(n, k).without_leading());
      find_reads(x.regions[0]);
      grows = false;
      for (std::size_t k = 0; k < carries.size(); ++k)
        grows |= grow(carries[k], of(body.inputs[k]), turn, body.inputs[k]);
    }
    for (int k = 0; k < x.operand_count; ++k) {
      const node_id in = g_.operand(n, k);
      if (k < o.carries) {
        result_read_[result(n, k)] = carries[std::size_t(k)];
        read(in, carries[std::size_t(k)]);
      } else {
        const box w = of(body.inputs[std::size_t(k)]);
        read(in, k < o.carries + o.xs ? w.with_leading(o.length) : w);
      }
    }
  }
  constexpr void forget_reads(int r) {
    for (node_id n : g_.regions[std::size_t(r)].nodes) {
      const node& x = g_.nodes[std::size_t(n)];
      read_[std::size_t(n)] = {};
      for (int k = 0; k < x.result_count; ++k) result_read_[result(n, k)] = {};
      if (owns_body(n)) forget_reads(x.regions[0]);
    }
  }

  const graph& g_;
  list<int> users_;                       ///< how many nodes run each region
  list<box> holds_, read_;                ///< by node
  list<box> result_holds_, result_read_;  ///< by place among the graph's results
};

}  // namespace cella
