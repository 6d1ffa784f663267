// Sums of sums over ranks, with one message.
#pragma once

#include <cella/graph/copy.hpp>
#include <cella/ops/arithmetic.hpp>
#include <cella/parallel/collective.hpp>

namespace cella::parallel {

/// The graph of a rank with all_reduce(a + b) in place of all_reduce(a) + all_reduce(b), where
/// nothing else reads the two: what the gradients of queries, keys and values add to that of their
/// input is exchanged once. A reduce_scatter whose parts are gathered at once is an all_reduce. It
/// is a matter of the order of sums.
constexpr graph merge_sums(const graph& g);

// ------------------------------------------------------------------------------------------------

namespace detail {

class sum_merger {
 public:
  constexpr explicit sum_merger(const graph& g)
      : g_(g),
        importer_(b_, g),
        here_(g.nodes.size()),
        readers_(g.nodes.size(), 0),
        reader_(g.nodes.size(), no_node) {}

  constexpr graph run() {
    const region& main = g_.regions[0];
    for (node_id n : main.nodes) {
      for (node_id o : g_.operands(n)) {
        ++readers_[std::size_t(o)];
        reader_[std::size_t(o)] = n;
      }
    }
    for (node_id o : main.outputs) readers_[std::size_t(o)] += 2;
    importer_.copy_inputs([&](node_id n, node_id here) { here_[std::size_t(n)].whole = here; });
    for (node_id n : main.nodes)
      if (g_.nodes[std::size_t(n)].op != &input_info_of) add(n);
    importer_.copy_outputs([&](node_id n) { return whole(n); });
    return std::move(b_.g);
  }

 private:
  /// An old node's value, or what has to be summed up over ranks to have it.
  struct value {
    node_id whole = no_node, part = no_node;
    attributes how{};
  };
  /// The node that alone reads this one's result, once; -1: there is none.
  constexpr node_id only_reader(node_id n) const {
    return readers_[std::size_t(n)] == 1 ? reader_[std::size_t(n)] : no_node;
  }
  constexpr bool is_gathered(node_id scattered) const {
    const node_id n = only_reader(scattered);
    if (n == no_node || !is<all_gather_op>(g_.nodes[std::size_t(n)])) return false;
    const auto a = g_.nodes[std::size_t(scattered)].attributes.as<collective_options>();
    const auto b = g_.nodes[std::size_t(n)].attributes.as<collective_options>();
    return a.mesh_axis == b.mesh_axis && a.dimension == b.dimension;
  }
  constexpr void add(node_id n) {
    const node& x = g_.nodes[std::size_t(n)];
    value& v = here_[std::size_t(n)];
    const auto in = g_.operands(n);
    // A sum waits for the one that it is added to.
    const node_id reader = only_reader(n);
    const bool waits = reader != no_node && is<add_op>(g_.nodes[std::size_t(reader)]);
    if (is<reduce_scatter_op>(x) && is_gathered(n)) {
      v.part = whole(in[0]);
      return;
    }
    const bool gathers = is<all_gather_op>(x) && here_[std::size_t(in[0])].whole == no_node;
    if (gathers || (is<all_reduce_op>(x) && waits)) {
      const auto how = x.attributes.as<collective_options>();
      v.part = gathers ? here_[std::size_t(in[0])].part : whole(in[0]);
      v.how = collective_options{how.mesh_axis, how.count};
      if (!waits) whole(n);
      return;
    }
    if (is<add_op>(x)) {
      const value &a = here_[std::size_t(in[0])], &b = here_[std::size_t(in[1])];
      if (a.whole == no_node && b.whole == no_node && in[0] != in[1] && a.how == b.how) {
        const std::array parts{a.part, b.part};
        v.part = importer_.copy(n, parts);
        v.how = a.how;
        if (!waits) whole(n);
        return;
      }
    }
    ids operands;
    for (node_id o : in) operands.push_back(whole(o));
    v.whole = importer_.copy(n, operands);
  }
  constexpr node_id whole(node_id n) {
    value& v = here_[std::size_t(n)];
    if (v.whole == no_node) v.whole = b_.emit(bound<all_reduce_op>(), ids{v.part}, v.how);
    return v.whole;
  }

  const graph& g_;
  builder b_;
  graph_importer importer_;
  list<value> here_;
  list<int> readers_;  ///< of each old node, how many
  ids reader_;         ///< of each old node, the last
};

}  // namespace detail

constexpr graph merge_sums(const graph& g) { return detail::sum_merger(g).run(); }

}  // namespace cella::parallel
