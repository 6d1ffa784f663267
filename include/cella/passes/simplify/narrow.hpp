// Computes of each value only what differs from zero and is read, where that is at most half of it.
// The last step of a sequence needs no other rows behind the last mixing of rows; the derivative of
// one element, in a chain of local operations, only its neighbourhood.
#pragma once

#include <cella/ops/elementwise.hpp>
#include <cella/passes/simplify/boxes.hpp>

namespace cella {

namespace detail {

/// Rewrites the main region, and the bodies of its loops, in place.
class narrower {
 public:
  explicit constexpr narrower(graph& g)
      : g_(g), before_(g), boxes_(before_), values_(g.nodes.size()) {}

  /// Whether less is computed anywhere; parts that are only cut and joined do not count.
  constexpr bool helps() const { return helps_in(0); }
  constexpr void run();

 private:
  /// The node that computes box `at` of a value; none if that is zero.
  struct value {
    node_id id = no_node;
    box at{};
  };

  constexpr shape shape_of(node_id n) const { return before_.nodes[std::size_t(n)].type.shape; }

  /// Whether less is computed in a region that is rewritten, or in the loops in it.
  constexpr bool helps_in(int r) const {
    for (node_id n : before_.regions[std::size_t(r)].nodes) {
      const node& x = before_.nodes[std::size_t(n)];
      if (boxes_.owns_body(n) && helps_in(x.regions[0])) return true;
      if (x.op == &input_info_of || x.op == &get_info_of || is<constant_op>(x) ||
          is<concat_op>(x) || boxes_.moves(n) || x.result_count > 0)
        continue;
      if (part(n) != box::whole(x.type.shape)) return true;
    }
    return false;
  }

  // ---- which part of a value is computed

  static constexpr box worthwhile(const box& w, const shape& s) {
    return w.size() * 2 <= s.size() ? w : box::whole(s);
  }
  /// What goes into a loop and comes out of it has at least one element.
  static constexpr box not_empty(box w, const shape& s) {
    if (!w.empty) return w;
    w = box::whole(s);
    for (int d = 0; d < s.rank; ++d) w.set(d, 0, 1);
    return w;
  }
  constexpr box part(node_id n) const {
    const node& x = before_.nodes[std::size_t(n)];
    if (!boxes_.has_parts(n)) return box::whole(x.type.shape);
    if (x.op == &get_info_of)
      return part_of_result(before_.operand(n, 0), x.attributes.as<get_attributes>().result);
    return worthwhile(boxes_.of(n), x.type.shape);
  }
  constexpr box part_of_result(node_id loop, int k) const {
    const node& x = before_.nodes[std::size_t(loop)];
    const auto o = x.attributes.as<scan_options>();
    const shape s = before_.result_type(loop, k).shape;
    if (k < o.carries) return not_empty(worthwhile(boxes_.of_result(loop, k), s), s);
    return part_of_output(loop, k).with_leading(o.length);
  }
  /// Of output k of a loop's body, one slice of a result.
  constexpr box part_of_output(node_id loop, int k) const {
    const node& x = before_.nodes[std::size_t(loop)];
    if (k < x.attributes.as<scan_options>().carries) return part_of_result(loop, k);
    const shape s = shape_of(before_.regions[std::size_t(x.regions[0])].outputs[std::size_t(k)]);
    return not_empty(worthwhile(boxes_.of_result(loop, k).without_leading(), s), s);
  }
  constexpr box part_of_input(node_id loop, int k) const {
    const node& x = before_.nodes[std::size_t(loop)];
    if (k < x.attributes.as<scan_options>().carries) return part_of_result(loop, k);
    const node_id in = before_.regions[std::size_t(x.regions[0])].inputs[std::size_t(k)];
    return not_empty(worthwhile(boxes_.of(in), shape_of(in)), shape_of(in));
  }

  // ---- the new graph

  /// Rewrites a region whose inputs are placed; output k is to hold `box_of(k)`.
  template <class BoxOf>
  constexpr void rebuild(int r, BoxOf box_of) {
    const ids outer = order_;
    order_.clear();
    for (node_id n : before_.regions[std::size_t(r)].nodes) visit(n);
    region& to = g_.regions[std::size_t(r)];
    for (std::size_t k = 0; k < to.outputs.size(); ++k)
      to.outputs[k] = fit(before_.regions[std::size_t(r)].outputs[k], box_of(int(k)));
    to.nodes = order_;
    g_.number_nodes(to);
    order_ = outer;
  }
  constexpr void visit(node_id n) {
    const node& x = before_.nodes[std::size_t(n)];
    if (x.op == &input_info_of) {
      order_.push_back(n);
      return;
    }
    if (x.result_count > 0) {
      visit_control(n);
      return;
    }
    const box w = part(n);
    if (w.empty) {
      values_[std::size_t(n)] = {};
    } else if (boxes_.moves(n)) {
      // What is moved lies elsewhere in the same value.
      value moved = values_[std::size_t(before_.operand(n, 0))];
      const auto by = x.attributes.as<slice_op::options>().start;
      moved.at = moved.at.moved(by, is<slice_op>(x) ? -1 : 1);
      values_[std::size_t(n)] = {fit(moved, w, n), w};
    } else if (is<concat_op>(x)) {
      join(n, w);
    } else if (x.op == &get_info_of) {
      place(n, w);
      order_.push_back(n);
    } else {
      const bool parts = boxes_.has_parts(n);
      ids in;
      for (int k = 0; k < x.operand_count; ++k) {
        const node_id from = before_.operand(n, k);
        in.push_back(fit(from, parts ? boxes_.operand_box(n, k, w) : box::whole(shape_of(from))));
      }
      g_.set_operands(n, in);
      place(n, w);
      order_.push_back(n);
    }
  }
  constexpr void visit_control(node_id n) {
    const node& x = before_.nodes[std::size_t(n)];
    const bool changes = boxes_.owns_body(n);
    const auto o = changes ? x.attributes.as<scan_options>() : scan_options{};
    ids in;
    for (int k = 0; k < x.operand_count; ++k) {
      const node_id from = before_.operand(n, k);
      if (!changes) {
        in.push_back(fit(from, box::whole(shape_of(from))));
        continue;
      }
      const box w = part_of_input(n, k);
      const bool sliced = k >= o.carries && k < o.carries + o.xs;
      in.push_back(fit(from, sliced ? w.with_leading(o.length) : w));
      place(before_.regions[std::size_t(x.regions[0])].inputs[std::size_t(k)], w);
    }
    g_.set_operands(n, in);
    order_.push_back(n);
    if (!changes) return;
    for (int k = 0; k < x.result_count; ++k)
      g_.results[std::size_t(x.first_result + k)].shape = part_of_result(n, k).extents();
    rebuild(x.regions[0], [&](int k) { return part_of_output(n, k); });
  }
  /// Joins the operands that reach into box `w`.
  constexpr void join(node_id n, const box& w) {
    ids in;
    for (int k = 0; k < before_.nodes[std::size_t(n)].operand_count; ++k) {
      const box wanted = boxes_.operand_box(n, k, w);
      if (!wanted.empty) in.push_back(fit(before_.operand(n, k), wanted));
    }
    if (in.size() == 1) {
      values_[std::size_t(n)] = {in[0], w};
      return;
    }
    g_.set_operands(n, in);
    place(n, w);
    order_.push_back(n);
  }

  /// Node n computes box `w` of what it computed.
  constexpr void place(node_id n, const box& w) {
    node& x = g_.nodes[std::size_t(n)];
    values_[std::size_t(n)] = {n, w};
    x.type.shape = w.extents();
    if (x.op->part_options) x.attributes = x.op->part_options(x.attributes, x.type.shape);
  }

  /// Box `w` of an old node's value: cut, and with zeros where the value is not known. There it is
  /// zero, or nobody reads what follows from it.
  constexpr node_id fit(node_id n, const box& w) { return fit(values_[std::size_t(n)], w, n); }
  constexpr node_id fit(const value& v, const box& w, node_id like) {
    if (v.at == w && !w.empty) return v.id;
    tensor_type t = before_.type(like);
    t.shape = w.extents();
    const box known = common(v.at, w);
    if (known.empty)
      return append(bound<constant_op>(), {},
                    constant_op::options{0, t.shape, {std::int32_t(t.element)}}, t, like);
    auto o = whole(known.extents());
    node_id n = v.id;
    if (known != v.at) {
      for (std::size_t d = 0; d < std::size_t(w.rank); ++d)
        o.start[d] = known.first[d] - v.at.first[d];
      n = append(bound<slice_op>(), {&n, 1}, o, {t.element, o.shape}, like);
    }
    if (known != w) {
      for (std::size_t d = 0; d < std::size_t(w.rank); ++d)
        o.start[d] = known.first[d] - w.first[d];
      o.shape = t.shape;
      n = append(bound<scatter_slice_op>(), {&n, 1}, o, t, like);
    }
    return n;
  }
  /// A node in the place in the user's source of another.
  constexpr node_id append(const op_info& op, span<const node_id> in, const attributes& o,
                           tensor_type t, node_id like) {
    order_.push_back(g_.append_like(like, op, in, o, t));
    return order_.back();
  }

  graph& g_;
  const graph before_;
  const box_finder boxes_;
  list<value> values_;  ///< by old node
  ids order_;
};

// Behind the class, since clang can evaluate a template member only where it is defined before.
constexpr void narrower::run() {
  for (node_id n : before_.regions[0].inputs) place(n, box::whole(shape_of(n)));
  rebuild(0,
          [&](int k) { return box::whole(shape_of(before_.regions[0].outputs[std::size_t(k)])); });
}

/// Whether there may be anything to find: a value is read by slices alone, of not more than half of
/// it, or something more than a sum is computed from padding. Most graphs are only asked this.
constexpr bool cuts(const graph& g) {
  // How many elements of a value are read, and how many are not padding, at most.
  list<std::int64_t> read(g.nodes.size(), 0), held(g.nodes.size(), 0);
  const auto size = [&](node_id n) { return g.nodes[std::size_t(n)].type.size(); };
  for (const region& r : g.regions) {
    for (node_id n : r.outputs) read[std::size_t(n)] += size(n);
    for (node_id n : r.nodes) {
      const node& x = g.nodes[std::size_t(n)];
      std::int64_t sum = 0;
      for (node_id o : g.operands(n)) {
        const std::int64_t known = held[std::size_t(o)];
        read[std::size_t(o)] += is<slice_op>(x) ? size(n) : size(o);
        sum += is<scatter_slice_op>(x) ? size(o) : known;
        if (!is<add_op>(x) && !is<scatter_slice_op>(x) && known * 2 <= size(o)) return true;
      }
      held[std::size_t(n)] =
          is<add_op>(x) || is<scatter_slice_op>(x) ? std::min(sum, size(n)) : size(n);
    }
  }
  for (const region& r : g.regions) {
    for (node_id n : r.nodes) {
      if (!is<slice_op>(g.nodes[std::size_t(n)])) continue;
      const node_id whole = g.operand(n, 0);
      if (read[std::size_t(whole)] * 2 <= size(whole)) return true;
    }
  }
  return false;
}

}  // namespace detail

/// The graph with values as large as their boxes, if there is anything to gain.
constexpr graph narrow(graph g) {
  if (!detail::cuts(g)) return g;
  detail::narrower n(g);
  if (n.helps()) n.run();
  return g;
}

}  // namespace cella
