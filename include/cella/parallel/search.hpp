// The search for the assignment of least cost: what can be chosen for each node, what choices cost
// alone and in pairs, and the elimination of one after the other.
#pragma once

#include <cella/parallel/elimination.hpp>
#include <cella/parallel/node_costs.hpp>

namespace cella::parallel {

/// What may be chosen.
struct search_space {
  unsigned axes = ~0u;  ///< bit a: whether loops may be cut along mesh axis a at all
  /// For each node, those that are left of its choices; empty: all. An input whose layout is fixed
  /// has one.
  list<list<node_choice>> only;
};

struct search_options {
  double memory_bytes = 0;              ///< of a rank, at most; 0: what the mesh says
  std::int64_t most_entries = 1 << 12;  ///< of a table: more find better plans and take longer
};

struct search_result {
  assignment choices;
  double seconds{};  ///< of a step, by the model: each operand brought to each reader by itself
  double bytes{};    ///< inputs and results that are kept, of a rank
  int forced{};      ///< 0: nothing within the model is cheaper (without a memory limit)
  bool fits = true;  ///< whether that is within the memory
  int nodes{};
  int tables{};  ///< of costs of pairs: equal pairs share one
};

/// The choices for node `n` whose loops are cut like that, which is possible: sums that the cut
/// leaves open are made whole, or left with each rank in parts.
constexpr list<node_choice> choices_with(const graph& g, node_id n, const device_mesh& m,
                                         const loop_cut& cut);
/// All choices for node `n` with cuts along a set of mesh axes.
constexpr list<node_choice> choices_of(const graph& g, node_id n, const device_mesh& m,
                                       unsigned axes);

/// The assignment whose steps take least time by the model of costs. Where it takes more memory
/// than there is, memory is given a price, the least with which it fits.
constexpr search_result search(const graph& g, const device_mesh& m, const search_space& space = {},
                               const search_options& options = {});

// ------------------------------------------------------------------------------------------------

namespace detail {

/// All layouts that come from `first` by cutting dimensions along mesh axes of a set.
constexpr list<layout> layouts_from(const shape& s, const layout& first, const device_mesh& m,
                                    unsigned axes) {
  list<layout> all{first};
  for (int a = 0; a < m.axis_count; ++a) {
    if (!(axes >> a & 1) || m[a].size == 1) continue;
    const std::size_t count = all.size();
    for (std::size_t i = 0; i < count; ++i) {
      for (int d = 0; d < s.rank; ++d) {
        layout l = all[i];
        l[a] = std::int8_t(d);
        if (can_lie(s, l, m)) all.push_back(l);
      }
    }
  }
  return all;
}

/// A choice with all that its costs depend on.
struct weighed_choice {
  node_choice choice;
  list<layout> operands;
  double seconds{}, bytes{};
};

}  // namespace detail

/// The costs of all choices of a graph, and the search among them.
class assignment_search {
 public:
  constexpr assignment_search(const graph& g, const device_mesh& m, const search_space& space)
      : g_(g), m_(m), space_(space), variable_(g.nodes.size(), -1) {
    for (node_id n : g.regions[0].nodes) {
      const node& x = g.nodes[std::size_t(n)];
      if (x.op == &get_info_of || is<constant_op>(x)) continue;  // lie as they are read
      variable_[std::size_t(n)] = int(nodes_.size());
      nodes_.push_back(n);
    }
    for (node_id n : nodes_) weigh(n);
    for (std::size_t v = 0; v < nodes_.size(); ++v) {
      network_.alone.emplace_back();
      for (const detail::weighed_choice& c : of(int(v))) network_.alone[v].push_back(c.seconds);
    }
    for (node_id n : nodes_) {
      const auto in = g.operands(n);
      for (std::size_t k = 0; k < in.size(); ++k) connect(in[k], n, int(k));
    }
    const region& main = g.regions[0];
    for (std::size_t k = 0; k < g.outputs.size(); ++k) {
      const int updates = g.outputs[k].updates;
      if (updates >= 0)
        connect(main.outputs[k], g.input(updates), -1);
      else
        deliver(main.outputs[k]);
    }
  }

  constexpr search_result run(const search_options& options) {
    const double limit = options.memory_bytes > 0 ? options.memory_bytes : m_.each.memory_bytes;
    search_result best = with_price(0, options);
    if (best.bytes > limit) {
      // Between a price that is too low and one that is high enough.
      double low = 0, high = 1e-12;
      search_result fitting = with_price(high, options);
      while (fitting.bytes > limit && high < 1e6) {
        low = high;
        high *= 16;
        fitting = with_price(high, options);
      }
      for (int i = 0; i < 24 && fitting.bytes <= limit; ++i) {
        const double middle = low > 0 ? low / 2 + high / 2 : high / 16;
        const search_result r = with_price(middle, options);
        (r.bytes > limit ? low : high) = middle;
        if (r.bytes <= limit && r.seconds <= fitting.seconds) fitting = r;
      }
      fitting.fits = fitting.bytes <= limit;
      best = fitting;
    }
    return best;
  }
  constexpr const cost_network& network() const { return network_; }
  constexpr const list<node_id>& nodes() const { return nodes_; }
  constexpr double bytes_of(const list<int>& decision) const {
    double sum = 0;
    for (std::size_t v = 0; v < nodes_.size(); ++v)
      sum += of(int(v))[std::size_t(decision[v])].bytes;
    return sum;
  }

 private:
  /// Choices of a node; nodes that are alike share them.
  constexpr const list<detail::weighed_choice>& of(int v) const {
    return kinds_[std::size_t(kind_[std::size_t(v)])].choices;
  }
  struct kind {
    node_id like{};
    list<detail::weighed_choice> choices;
  };

  constexpr bool is_limited(node_id n) const {
    return std::size_t(n) < space_.only.size() && !space_.only[std::size_t(n)].empty();
  }
  constexpr bool alike(node_id a, node_id b) const {
    const node &x = g_.nodes[std::size_t(a)], &y = g_.nodes[std::size_t(b)];
    if (x.op != y.op || x.type != y.type || x.operand_count != y.operand_count) return false;
    if (x.regions != y.regions || x.result_count != y.result_count) return false;
    for (int k = 0; k < x.operand_count; ++k)
      if (g_.type(g_.operand(a, k)) != g_.type(g_.operand(b, k))) return false;
    if (x.attributes != y.attributes || is_limited(a) != is_limited(b)) return false;
    return !is_limited(a) || space_.only[std::size_t(a)] == space_.only[std::size_t(b)];
  }
  constexpr void weigh(node_id n) {
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      if (!alike(kinds_[i].like, n)) continue;
      kind_.push_back(int(i));
      return;
    }
    kind_.push_back(int(kinds_.size()));
    kinds_.push_back({n, {}});
    list<node_choice> all;  // g++ 12 would free both arms of a conditional expression
    if (is_limited(n))
      all = space_.only[std::size_t(n)];
    else
      all = choices_of(g_, n, m_, space_.axes);
    const double whole = seconds_of_node(g_, n, m_.each);
    const node& x = g_.nodes[std::size_t(n)];
    for (const node_choice& c : all) {
      const node_part part = cut_node(g_, n, c.cut, m_);
      double seconds =
          std::max(whole * share_of(g_, n, c.cut, m_), cost_of_ring(g_, n, c, m_).seconds);
      for (int k = 0; k < detail::result_count(x) && x.op != &input_info_of; ++k)
        seconds += redistribution_cost(detail::result_type(g_, n, k), part.results[std::size_t(k)],
                                       c.results[std::size_t(k)], m_)
                       .seconds;
      kinds_.back().choices.push_back({c, part.operands, seconds, memory_of_node(g_, n, c, m_)});
    }
  }
  /// The node that a value comes from, and which of its results it is; -1: it costs nothing.
  constexpr int source(node_id n, int& result) const {
    const node& x = g_.nodes[std::size_t(n)];
    result = x.op == &get_info_of ? x.attributes.as<get_attributes>().result : 0;
    return variable_[std::size_t(x.op == &get_info_of ? g_.operand(n, 0) : n)];
  }
  /// The cost of bringing a value to operand k of a reader, or to the input that it replaces (-1).
  constexpr void connect(node_id value, node_id reader, int k) {
    int result = 0;
    const int u = source(value, result), v = variable_[std::size_t(reader)];
    if (u < 0 || u == v) return;
    const int ku = kind_[std::size_t(u)], kv = kind_[std::size_t(v)];
    int found = -1;
    for (std::size_t i = 0; i < known_.size() && found < 0; ++i) {
      const known& q = known_[i];
      if (q.u == ku && q.v == kv && q.result == result && q.operand == k) found = int(i);
    }
    if (found < 0) {
      found = int(known_.size());
      known_.push_back({ku, kv, result, k, pair_costs(value, u, result, v, k)});
    }
    const list<double>& cost = known_[std::size_t(found)].cost;
    for (cost_network::pair& p : network_.pairs) {
      if (p.u != u || p.v != v) continue;
      for (std::size_t i = 0; i < cost.size(); ++i) p.cost[i] += cost[i];
      return;
    }
    network_.pairs.push_back({u, v, cost});
  }
  constexpr list<double> pair_costs(node_id value, int u, int result, int v, int k) const {
    const tensor_type t = g_.type(value);
    const list<detail::weighed_choice>&from = of(u), &to = of(v);
    list<double> cost(from.size() * to.size(), 0.0);
    for (std::size_t i = 0; i < from.size(); ++i) {
      const layout& l = from[i].choice.results[std::size_t(result)];
      std::size_t same = 0;  // the first possibility that lies alike has the same costs
      while (from[same].choice.results[std::size_t(result)] != l) ++same;
      if (same < i) {
        for (std::size_t j = 0; j < to.size(); ++j)
          cost[i * to.size() + j] = cost[same * to.size() + j];
        continue;
      }
      const move_chains chains(t, l, m_);
      for (std::size_t j = 0; j < to.size(); ++j)
        cost[i * to.size() + j] =
            chains.cost_to(k < 0 ? to[j].choice.results[0] : to[j].operands[std::size_t(k)])
                .seconds;
    }
    return cost;
  }
  /// Results of a step are whole.
  constexpr void deliver(node_id value) {
    int result = 0;
    const int u = source(value, result);
    if (u < 0) return;
    for (std::size_t i = 0; i < of(u).size(); ++i)
      network_.alone[std::size_t(u)][i] +=
          redistribution_cost(g_.type(value), of(u)[i].choice.results[std::size_t(result)], {}, m_)
              .seconds;
  }
  /// The best assignment if a byte of memory costs so many seconds.
  constexpr search_result with_price(double price, const search_options& options) const {
    cost_network priced = network_;
    for (std::size_t v = 0; price > 0 && v < nodes_.size(); ++v)
      for (std::size_t i = 0; i < of(int(v)).size(); ++i)
        priced.alone[v][i] += price * of(int(v))[i].bytes;
    const network_decision d = least_cost(priced, options.most_entries);
    search_result r;
    r.choices = replicate(g_);
    r.seconds = network_.cost(d.decision);
    r.bytes = bytes_of(d.decision);
    r.forced = d.forced;
    r.nodes = int(nodes_.size());
    r.tables = int(known_.size());
    for (std::size_t v = 0; v < nodes_.size(); ++v)
      r.choices[std::size_t(nodes_[v])] = of(int(v))[std::size_t(d.decision[v])].choice;
    return r;
  }

  struct known {
    int u{}, v{}, result{}, operand{};
    list<double> cost;
  };

  const graph& g_;
  const device_mesh& m_;
  const search_space& space_;
  list<int> variable_;  ///< by node
  list<node_id> nodes_;
  list<int> kind_;
  list<kind> kinds_;
  list<known> known_;
  cost_network network_;
};

constexpr list<node_choice> choices_with(const graph& g, node_id n, const device_mesh& m,
                                         const loop_cut& cut) {
  node_choice c{cut, cut_node(g, n, cut, m).results};
  unsigned summed = 0;  // mesh axes
  for (layout& l : c.results) {
    for (int a = 0; a < m.axis_count; ++a) {
      if (l[a] != partial) continue;
      summed |= 1u << a;
      l[a] = replicated;
    }
  }
  if (summed == 0 || c.results.size() > 1) return {c};
  list<node_choice> all;
  for (const layout& l :
       detail::layouts_from(detail::result_type(g, n, 0).shape, c.results[0], m, summed))
    all.push_back({cut, {l}});
  return all;
}
constexpr list<node_choice> choices_of(const graph& g, node_id n, const device_mesh& m,
                                       unsigned axes) {
  list<node_choice> all;
  const node& x = g.nodes[std::size_t(n)];
  if (x.op == &input_info_of) {
    for (const layout& l : detail::layouts_from(x.type.shape, {}, m, axes))
      all.push_back({{}, {l}});
    return all;
  }
  for (const loop_cut& cut : possible_cuts(g, n, m, axes))
    for (const node_choice& c : choices_with(g, n, m, cut)) all.push_back(c);
  return all;
}

constexpr search_result search(const graph& g, const device_mesh& m, const search_space& space,
                               const search_options& options) {
  return assignment_search(g, m, space).run(options);
}

}  // namespace cella::parallel
