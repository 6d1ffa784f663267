// From how some tensors are cut to how everything that is computed of them is.
#pragma once

#include <cella/parallel/only_updates.hpp>
#include <cella/parallel/search.hpp>

namespace cella::parallel {

/// Lets each node follow its operands: where one is cut along an axis of the mesh, the loop that
/// walks there is cut, too, if that is possible; where none is, all ranks compute the node alike.
/// Where operands are cut along different loops, the parameter leads; of others, the one for which
/// least has to be moved.
/// What is cut of inputs and of nodes with choices stays. Left open is how sums are kept, and what
/// is repeated for its readers (broadcasts, masks), for which any cut is as good.
struct propagation {
  /// Left open, too, is what stands between a gradient and what it updates, if no operand is cut.
  bool updates_open = false;
  /// Each rank keeps its part of sums that only updates read (gradients). Parameters that are cut
  /// are gathered by those who read them, unless that is an update.
  bool gradients_cut = false;
  std::int64_t whole_bytes = 0;  ///< gradients of fewer are not
};
constexpr void propagate(const graph& g, const device_mesh& m, search_space& space,
                         const propagation& how = {});

// ------------------------------------------------------------------------------------------------

namespace detail {

class propagator {
 public:
  constexpr propagator(const graph& g, const device_mesh& m, search_space& space,
                       const propagation& how)
      : g_(g),
        m_(m),
        space_(space),
        how_(how),
        updates_(only_updates(g)),
        lies_(g.nodes.size()),
        gathered_(g.nodes.size(), 0),
        leads_(g.nodes.size(), 0),
        open_(g.nodes.size(), 0) {
    for (std::size_t i = 0; i < g.inputs.size(); ++i)
      if (g.inputs[i].role == input_role::parameter)
        (how.gradients_cut ? gathered_ : leads_)[std::size_t(g.input(int(i)))] = 1;
  }

  constexpr void run() {
    for (node_id n : g_.regions[0].nodes) {
      const node& x = g_.nodes[std::size_t(n)];
      if (x.op == &get_info_of) continue;
      list<node_choice>& only = space_.only[std::size_t(n)];
      lies_[std::size_t(n)].resize(std::size_t(result_count(x)));
      if (only.empty() && x.op != &input_info_of) {
        const loop_cut cut = followed(n);
        open_[std::size_t(n)] = cut.is_whole() && is_open(n);
        if (!open_[std::size_t(n)]) only = choices_with(g_, n, m_, cut);
      }
      if (!only.empty()) lies_[std::size_t(n)] = only[0].results;
      const auto in = g_.operands(n);
      if (in.size() == 1 && x.op->computes == compute_class::movement)
        leads_[std::size_t(n)] = leads_[std::size_t(in[0])];
      if (how_.gradients_cut && updates_[std::size_t(n)] && g_.type(n).bytes() >= how_.whole_bytes)
        keep_parts(only);
    }
  }

 private:
  /// Leaves of several ways to keep a sum those that leave each rank its part, if there are any.
  static constexpr void keep_parts(list<node_choice>& ways) {
    list<node_choice> parts;
    for (const node_choice& c : ways)
      if (c.results[0] != ways[0].results[0]) parts.push_back(c);
    if (!parts.empty()) ways = parts;
  }
  /// How a value lies for those who follow it.
  constexpr layout lies(node_id n, node_id reader) const {
    const node& x = g_.nodes[std::size_t(n)];
    const bool is_update =
        updates_[std::size_t(reader)] && g_.nodes[std::size_t(reader)].op->pointwise;
    if (gathered_[std::size_t(n)] && !is_update) return {};
    if (x.op != &get_info_of) return lies_[std::size_t(n)][0];
    return lies_[std::size_t(g_.operand(n, 0))]
                [std::size_t(x.attributes.as<get_attributes>().result)];
  }
  /// Whether a node without an operand that is cut may be cut all the same: it, or what it reads,
  /// is repeated (a mask, say), or it stands between a gradient and the optimizer's state.
  constexpr bool is_open(node_id n) const {
    const node& x = g_.nodes[std::size_t(n)];
    if (is<broadcast_op>(x)) return true;
    if (!x.op->pointwise) return false;
    if (how_.updates_open && updates_[std::size_t(n)]) return true;
    bool repeated = true;
    for (node_id o : g_.operands(n)) {
      const bool constant = g_.nodes[std::size_t(o)].op->computes == compute_class::source &&
                            g_.nodes[std::size_t(o)].op != &input_info_of;
      repeated &= constant || open_[std::size_t(o)];
    }
    return repeated;
  }
  constexpr loop_cut followed(node_id n) const {
    loop_cut cut;
    if (!has_parts(g_.nodes[std::size_t(n)])) return cut;
    for (int a = 0; a < m_.axis_count; ++a) {
      if (!(space_.axes >> a & 1) || m_[a].size == 1) continue;
      if (!follow(n, a, cut, true)) follow(n, a, cut, false);
    }
    return cut;
  }
  /// Cuts the loop along which an operand is cut along mesh axis `a`; of several, the one for which
  /// the least has to be moved. If `led`, only parameters (and what they are moved to) are asked.
  constexpr bool follow(node_id n, int a, loop_cut& cut, bool led) const {
    const iteration_space space = loops_of(g_, n);
    const auto in = g_.operands(n);
    const loop_cut before = cut;
    double least = -1;
    for (std::size_t k = 0; k < in.size(); ++k) {
      const int d = led && !leads_[std::size_t(in[k])] ? replicated : lies(in[k], n)[a];
      for (int f = 0; d >= 0 && f < int(space.factors.size()); ++f) {
        const shape extents = g_.type(in[k]).shape;
        if (f == cut[a] || dimension_cut(g_, n, space, int(k), extents, f) != d) continue;
        loop_cut with = before;
        with[a] = std::int8_t(f);
        const node_part part = cut_node(g_, n, with, m_);
        if (!part.possible) continue;
        const double cost = moved(n, part);
        if (least >= 0 && cost >= least) continue;
        least = cost;
        cut = with;
      }
    }
    return least >= 0;
  }
  /// The time of the moves to operands that lie like that, and of sums that are left open.
  constexpr double moved(node_id n, const node_part& part) const {
    double seconds = 0;
    const auto in = g_.operands(n);
    for (std::size_t k = 0; k < in.size(); ++k) {
      const layout from = lies(in[k], n);
      if (!from.is_partial())
        seconds += redistribution_cost(g_.type(in[k]), from, part.operands[k], m_).seconds;
    }
    for (std::size_t k = 0; k < part.results.size(); ++k)
      if (part.results[k].is_partial())
        seconds += redistribution_cost(result_type(g_, n, int(k)), part.results[k], {}, m_).seconds;
    return seconds;
  }

  const graph& g_;
  const device_mesh& m_;
  search_space& space_;
  const propagation& how_;
  flags updates_;            ///< nodes that belong to the updates
  list<list<layout>> lies_;  ///< the results of each node, with sums made whole
  flags gathered_;           ///< parameters of which each rank has a part, and reads the whole
  flags leads_;              ///< parameters whose cut others follow first
  flags open_;
};

}  // namespace detail

constexpr void propagate(const graph& g, const device_mesh& m, search_space& space,
                         const propagation& how) {
  detail::propagator(g, m, space, how).run();
}

}  // namespace cella::parallel
