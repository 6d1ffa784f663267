// Boxes: which elements of each value differ from zero and are read by anybody, as one box per
// value, through loops too. A derivative by one element, or one step of a sequence that is wanted,
// leaves most of the others out.
#pragma once

#include <cella/ops/control.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/passes/simplify/box.hpp>

namespace cella {

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
    return x.op->part_options || is<concat_op>(x) || moves(n);
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
  /// What operand k of a node that has parts must hold for box `w` of the result: where the result
  /// walks, what is wanted; where it sums, what is not zero.
  constexpr box operand_box(node_id n, int k, const box& w) const {
    if (is_elementwise(n)) return w;
    const iteration_space loops = loops_of(g_, n);
    loop_part part(loops);
    if (loops.over == combination::sum) keep_not_zero(part, n);
    part.set_to(loops.result(), w);
    return part.of(k, shape_of(g_.operand(n, k)));
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
  /// Most nodes are. Elements then lie in operands as in the result, and no loops have to be asked.
  constexpr bool is_elementwise(node_id n) const {
    return g_.nodes[std::size_t(n)].op->kind == op_kind::elementwise;
  }
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
  /// Leaves the points at which no operand is zero.
  constexpr void keep_not_zero(loop_part& part, node_id n) const {
    const auto in = g_.operands(n);
    for (std::size_t k = 0; k < in.size(); ++k)
      part.keep_within(int(k), holds_[std::size_t(in[k])]);
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
    const unsigned alone = x.op->zero_where, together = x.op->zero_of;
    if (!x.op->space || (!alone && !together)) return all;
    if (is_elementwise(n)) {
      box w = alone ? all : box();
      for (int k = 0; k < x.operand_count; ++k)
        if (counts(alone ? alone : together, k)) w = alone ? common(w, in(k)) : hull(w, in(k));
      return w;
    }
    // Elements to which a point belongs where an operand is not zero.
    const iteration_space loops = loops_of(g_, n);
    box w;
    if (alone) {
      loop_part part(loops);
      for (int k = 0; k < x.operand_count; ++k)
        if (counts(alone, k)) part.keep_within(k, in(k));
      w = part.of(loops.result(), x.type.shape);
    } else {
      for (int k = 0; k < x.operand_count; ++k) {
        if (!counts(together, k)) continue;
        loop_part part(loops);
        part.keep_within(k, in(k));
        w = hull(w, part.of(loops.result(), x.type.shape));
      }
    }
    return w;
  }
  /// Whether a mask of operands has the k-th; its last bit stands for all behind.
  static constexpr bool counts(unsigned mask, int k) { return mask >> std::min(k, 31) & 1; }
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
