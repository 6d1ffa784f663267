// What stands for pairs of queries and keys in a graph, masks and biases: which axes they really
// have, and which masks are bands of places.
#pragma once

#include <cella/ops/array.hpp>
#include <cella/ops/broadcast.hpp>
#include <cella/ops/comparison.hpp>
#include <cella/parallel/attention_options.hpp>

namespace cella::parallel::detail {

/// Whether two nodes have the same value, because they are the same operations on the same nodes.
constexpr bool same_value(const graph& g, node_id a, node_id b, int depth = 12) {
  if (a == b) return true;
  const node &x = g.nodes[std::size_t(a)], &y = g.nodes[std::size_t(b)];
  const bool repeats = !x.op->traits.impure && x.op->computes != compute_class::random;
  if (depth == 0 || x.op != y.op || x.op == &input_info_of || x.op == &get_info_of || !repeats ||
      x.op->traits.stored || x.regions[0] >= 0 || x.result_count || x.type != y.type ||
      x.attributes != y.attributes || x.operand_count != y.operand_count)
    return false;
  for (int i = 0; i < x.operand_count; ++i)
    if (!same_value(g, g.operand(a, i), g.operand(b, i), depth - 1)) return false;
  return true;
}

/// A node that is repeated along axes that `axes` does not name, and has the others in their order.
struct found_pairs {
  node_id n = no_node;
  unsigned axes{};
};

/// Looks at what is of the scores' shape through broadcasts and reshapes.
class pairs_search {
 public:
  constexpr pairs_search(const graph& g, const shape& pairs) : g_(g), pairs_(pairs) {}

  int lowest = -attention_op_options::any_distance;  ///< of keys that a mask shows
  int highest = attention_op_options::any_distance;
  list<found_pairs> rest;

  /// Numbers; false if their axes are in another order.
  constexpr bool add(node_id n) { return look(n, whole(), false); }
  /// A mask is what its parts have in common: bands of places, and the rest.
  constexpr bool add_mask(node_id n) { return look(n, whole(), true); }

 private:
  /// The axis of the scores for each axis of a node; -1 for an extent of 1.
  using axis_map = std::array<std::int8_t, max_rank>;

  constexpr const node& at(node_id n) const { return g_.nodes[std::size_t(n)]; }
  constexpr axis_map whole() const {
    axis_map m{};
    for (int d = 0; d < pairs_.rank; ++d) m[std::size_t(d)] = std::int8_t(d);
    return m;
  }
  constexpr bool look(node_id n, axis_map m, bool is_mask) {
    n = inside(n, m);
    if (is_mask && is<logical_and_op>(at(n)))
      return look(g_.operand(n, 0), m, true) && look(g_.operand(n, 1), m, true);
    if (is_mask && is_band(n, m)) return true;
    found_pairs p{n, 0};
    int last = -1;
    const shape s = g_.type(n).shape;
    for (int d = 0; d < s.rank; ++d) {
      const int axis = m[std::size_t(d)];
      if (s[d] == 1 || axis < 0) continue;
      if (axis <= last) return false;
      p.axes |= 1u << (last = axis);
    }
    rest.push_back(p);
    return true;
  }
  /// What broadcasts and reshapes of axes with one place make `n` of.
  constexpr node_id inside(node_id n, axis_map& m) const {
    for (;;) {
      axis_map inner;
      inner.fill(-1);
      if (is<broadcast_op>(at(n))) {
        const auto o = at(n).attributes.as<broadcast_op::options>();
        for (std::size_t d = 0; d < max_rank && o.axes[d] >= 0; ++d)
          inner[d] = m[std::size_t(o.axes[d])];
      } else if (!is<reshape_op>(at(n)) || !adds_places(n, m, inner)) {
        return n;
      }
      m = inner;
      n = g_.operand(n, 0);
    }
  }
  /// Whether a reshape only adds or takes axes of one place.
  constexpr bool adds_places(node_id n, const axis_map& m, axis_map& inner) const {
    const shape from = g_.type(g_.operand(n, 0)).shape, to = g_.type(n).shape;
    int e = 0;
    for (int d = 0; d < from.rank; ++d) {
      if (from[d] == 1) continue;
      while (e < to.rank && to[e] == 1) ++e;
      if (e == to.rank || to[e] != from[d]) return false;
      inner[std::size_t(d)] = m[std::size_t(e++)];
    }
    for (; e < to.rank; ++e)
      if (to[e] != 1) return false;
    return true;
  }
  /// A comparison of key place - query place, or of that less a number, with a number.
  constexpr bool is_band(node_id n, axis_map m) {
    const bool le = is<less_equal_op>(at(n)), lt = is<less_op>(at(n)),
               ge = is<greater_equal_op>(at(n)), gt = is<greater_op>(at(n));
    if (!le && !lt && !ge && !gt) return false;
    int limit = 0, first = 0;
    if (!is_place(g_.operand(n, 1), limit)) return false;
    node_id distance = inside(g_.operand(n, 0), m);
    if (!is<sub_op>(at(distance))) return false;
    if (is_place(g_.operand(distance, 1), first)) {
      limit += first;
      distance = inside(g_.operand(distance, 0), m);
      if (!is<sub_op>(at(distance))) return false;
    }
    const int key = pairs_.rank - 1, query = pairs_.rank - 2;
    const int a = counts_along(g_.operand(distance, 0), m),
              b = counts_along(g_.operand(distance, 1), m);
    if (a == key && b == query) {
      if (le || lt)
        highest = std::min(highest, lt ? limit - 1 : limit);
      else
        lowest = std::max(lowest, gt ? limit + 1 : limit);
      return true;
    }
    return false;
  }
  constexpr bool is_place(node_id n, int& place) const {
    if (!is<constant_op>(at(n))) return false;
    const double value = at(n).attributes.as<constant_op::options>().value;
    if (!(value > -(1 << 28) && value < 1 << 28)) return false;
    place = int(value);
    return place == value;
  }
  /// The axis of the scores along which a node counts places; -1: it does something else.
  constexpr int counts_along(node_id n, axis_map m) const {
    n = inside(n, m);
    if (!is<iota_op>(at(n)) || size_of(at(n).type.element) < 4) return -1;  // small ones wrap
    return m[std::size_t(at(n).attributes.as<iota_op::options>().axis)];
  }

  const graph& g_;
  const shape pairs_;
};

}  // namespace cella::parallel::detail
