// From how some tensors are cut to how everything that is computed of them is.
#pragma once

#include <cella/parallel/search.hpp>

namespace cella::parallel {

/// Lets each node follow its operands: where one is cut along an axis of the mesh, the loop that
/// walks there is cut, too, if that is possible; where none is, all ranks compute the node alike.
/// What is cut of inputs and of nodes with choices stays. Left open is how sums are kept, and what
/// is repeated for its readers (broadcasts, masks), for which any cut is as good.
struct propagation {
  /// Left open, too, is what stands between a gradient and what it updates, if no operand is cut.
  bool updates_open = false;
  /// Each rank keeps its part of sums that only updates read (gradients). Parameters that are cut
  /// are gathered by those who read them, unless that is an update.
  bool gradients_cut = false;
};
constexpr void propagate(const graph& g, const device_mesh& m, search_space& space,
                         const propagation& how = {});

/// For each node of the main region whether all that follows from it are new values of inputs: it
/// belongs to the update, not to the results.
constexpr flags only_updates(const graph& g);

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
        open_(g.nodes.size(), 0) {
    for (std::size_t i = 0; how.gradients_cut && i < g.inputs.size(); ++i)
      gathered_[std::size_t(g.input(int(i)))] = g.inputs[i].role == input_role::parameter;
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
      if (how_.gradients_cut && updates_[std::size_t(n)]) keep_parts(only);
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
    const iteration_space space = loops_of(g_, n);
    const auto in = g_.operands(n);
    for (int a = 0; a < m_.axis_count; ++a) {
      if (!(space_.axes >> a & 1) || m_[a].size == 1) continue;
      for (std::size_t k = 0; k < in.size() && cut[a] < 0; ++k) {
        const int d = lies(in[k], n)[a];
        for (int f = 0; d >= 0 && f < int(space.factors.size()) && cut[a] < 0; ++f) {
          if (dimension_along(space, int(k), g_.type(in[k]).shape, f) != d) continue;
          loop_cut with = cut;
          with[a] = std::int8_t(f);
          if (cut_node(g_, n, with, m_).possible) cut = with;
        }
      }
    }
    return cut;
  }

  const graph& g_;
  const device_mesh& m_;
  search_space& space_;
  const propagation& how_;
  flags updates_;            ///< nodes that belong to the updates
  list<list<layout>> lies_;  ///< the results of each node, with sums made whole
  flags gathered_;           ///< parameters of which each rank has a part, and reads the whole
  flags open_;
};

}  // namespace detail

constexpr void propagate(const graph& g, const device_mesh& m, search_space& space,
                         const propagation& how) {
  detail::propagator(g, m, space, how).run();
}

constexpr flags only_updates(const graph& g) {
  flags updates(g.nodes.size(), 1);
  const region& main = g.regions[0];
  for (std::size_t k = 0; k < g.outputs.size(); ++k)
    if (g.outputs[k].updates < 0) updates[std::size_t(main.outputs[k])] = 0;
  for (std::size_t i = main.nodes.size(); i-- > 0;)
    for (node_id o : g.operands(main.nodes[i]))
      updates[std::size_t(o)] &= updates[std::size_t(main.nodes[i])];
  return updates;
}

}  // namespace cella::parallel
