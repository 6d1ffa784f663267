// From how some tensors are cut to how everything that is computed of them is.
#pragma once

#include <cella/parallel/search.hpp>

namespace cella::parallel {

/// Lets each node follow its operands: where one is cut along an axis of the mesh, the loop that
/// walks there is cut, too, if that is possible; where none is, all ranks compute the node alike.
/// What is cut of inputs and of nodes with choices stays. Left open is how sums are kept, and what
/// is repeated for its readers (broadcasts, masks), for which any cut is as good; if
/// `updates_open`, so are elementwise operations without an operand that is cut: those between a
/// gradient and the optimizer's state.
constexpr void propagate(const graph& g, const device_mesh& m, search_space& space,
                         bool updates_open = false);

// ------------------------------------------------------------------------------------------------

namespace detail {

class propagator {
 public:
  constexpr propagator(const graph& g, const device_mesh& m, search_space& space, bool updates_open)
      : g_(g),
        m_(m),
        space_(space),
        updates_open_(updates_open),
        lies_(g.nodes.size()),
        open_(g.nodes.size(), 0) {}

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
    }
  }

 private:
  constexpr layout lies(node_id n) const {
    const node& x = g_.nodes[std::size_t(n)];
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
    bool repeated = true;
    for (node_id o : g_.operands(n)) {
      const bool constant = g_.nodes[std::size_t(o)].op->computes == compute_class::source &&
                            g_.nodes[std::size_t(o)].op != &input_info_of;
      repeated &= constant || open_[std::size_t(o)];
    }
    return repeated || updates_open_;
  }
  constexpr loop_cut followed(node_id n) const {
    loop_cut cut;
    if (!has_parts(g_.nodes[std::size_t(n)])) return cut;
    const iteration_space space = loops_of(g_, n);
    const auto in = g_.operands(n);
    for (int a = 0; a < m_.axis_count; ++a) {
      if (!(space_.axes >> a & 1) || m_[a].size == 1) continue;
      for (std::size_t k = 0; k < in.size() && cut[a] < 0; ++k) {
        const int d = lies(in[k])[a];
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
  bool updates_open_;
  list<list<layout>> lies_;  ///< the results of each node, with sums made whole
  flags open_;
};

}  // namespace detail

constexpr void propagate(const graph& g, const device_mesh& m, search_space& space,
                         bool updates_open) {
  detail::propagator(g, m, space, updates_open).run();
}

}  // namespace cella::parallel
