// The least sum of costs that each depend on one or two of many choices: choices are eliminated one
// after the other, each for the choices that it meets.
#pragma once

#include <algorithm>
#include <cella/graph/graph.hpp>
#include <cella/graph/list.hpp>
#include <cstdint>
#include <limits>

namespace cella::parallel {

/// Choices, each among a few possibilities, and what they cost: each alone, and in pairs.
struct cost_network {
  struct pair {
    int u{}, v{};
    list<double> cost;  ///< [possibility of u][possibility of v]
  };
  list<list<double>> alone;  ///< for each choice the cost of each possibility
  list<pair> pairs;

  constexpr int possibilities(int v) const { return int(alone[std::size_t(v)].size()); }
  /// The cost of a decision: a possibility for each choice.
  constexpr double cost(const list<int>& decision) const {
    double sum = 0;
    for (std::size_t v = 0; v < alone.size(); ++v) sum += alone[v][std::size_t(decision[v])];
    for (const pair& p : pairs)
      sum += p.cost[std::size_t(decision[std::size_t(p.u)] * possibilities(p.v) +
                                decision[std::size_t(p.v)])];
    return sum;
  }
};

struct network_decision {
  list<int> decision;
  /// How many choices were made without looking ahead, since a table would have become too large.
  /// Without any the decision is the cheapest there is.
  int forced{};
};

/// The cheapest decision, with tables of at most `most_entries` numbers. Where that makes it force
/// choices, some rounds follow in which others keep what they were decided to be, and those are
/// decided again.
constexpr network_decision least_cost(const cost_network& n, std::int64_t most_entries = 1 << 12);

// ------------------------------------------------------------------------------------------------

namespace detail {

/// Non-serial dynamic programming (Bertelè and Brioschi 1972): a choice is replaced by a table of
/// its least cost for all possibilities of the choices that it shares costs with.
class eliminator {
 public:
  constexpr eliminator(const cost_network& n, std::int64_t most_entries)
      : n_(n),
        most_(most_entries),
        met_by_(n.alone.size()),
        left_(n.alone.size(), 1),
        size_(n.alone.size(), 0),
        forced_before_(n.alone.size(), 0) {
    for (std::size_t v = 0; v < n.alone.size(); ++v) add({{int(v)}, n.alone[v]});
    for (const cost_network::pair& p : n.pairs) add({{p.u, p.v}, p.cost});
  }

  /// What has to be forced keeps its decision of a round before; others than were forced then.
  constexpr void keep(const list<int>& decision, const flags& forced_before) {
    kept_ = decision;
    forced_before_ = forced_before;
  }
  constexpr network_decision run() {
    network_decision d;
    d.decision.assign(n_.alone.size(), 0);
    for (std::size_t k = 0; k < n_.alone.size(); ++k) {
      const int v = cheapest_to_eliminate();
      if (v >= 0) {
        eliminate(v);
      } else {
        const int decided = most_connected();
        const int possibility = kept_.empty() ? guess(decided) : kept_[std::size_t(decided)];
        force(decided, possibility);
        d.decision[std::size_t(decided)] = possibility;
        forced_.push_back(decided);
      }
    }
    d.forced = int(forced_.size());
    for (std::size_t k = gone_.size(); k-- > 0;) {
      const gone& g = gone_[k];
      std::size_t at = 0;
      for (int u : g.neighbours)
        at = at * std::size_t(n_.possibilities(u)) + std::size_t(d.decision[std::size_t(u)]);
      d.decision[std::size_t(g.v)] = g.best[at];
    }
    return d;
  }
  constexpr const list<int>& forced() const { return forced_; }

 private:
  struct table {
    list<int> over;  ///< choices, the last one fastest
    list<double> cost;
  };
  struct gone {
    int v{};
    list<int> neighbours;
    list<int> best;
  };

  constexpr void add(table t) {
    const int id = int(tables_.size());
    for (int v : t.over) {
      met_by_[std::size_t(v)].push_back(id);
      size_[std::size_t(v)] = 0;
    }
    tables_.push_back(std::move(t));
  }
  constexpr list<int> neighbours(int v) const {
    list<int> all;
    for (int id : met_by_[std::size_t(v)])
      for (int u : tables_[std::size_t(id)].over)
        if (u != v && std::find(all.begin(), all.end(), u) == all.end()) all.push_back(u);
    return all;
  }
  constexpr std::int64_t entries(const list<int>& over) const {
    std::int64_t n = 1;
    for (int u : over) {
      n *= n_.possibilities(u);
      if (n > most_) return most_ + 1;
    }
    return n;
  }
  /// The choice whose table would be smallest; -1 if all would be too large.
  constexpr int cheapest_to_eliminate() {
    int best = -1;
    std::int64_t least = most_ + 1;
    for (std::size_t v = 0; v < left_.size() && least > 1; ++v) {
      if (!left_[v]) continue;
      if (size_[v] == 0) size_[v] = entries(neighbours(int(v)));
      if (size_[v] >= least) continue;
      least = size_[v];
      best = int(v);
    }
    return best;
  }
  /// Takes all tables of v away.
  constexpr list<table> take(int v) {
    list<table> all;
    const list<int> found = met_by_[std::size_t(v)];
    for (int id : found) {
      table& t = tables_[std::size_t(id)];
      for (int u : t.over) {
        list<int>& m = met_by_[std::size_t(u)];
        m.erase(std::find(m.begin(), m.end(), id));
        size_[std::size_t(u)] = 0;
      }
      all.push_back(std::move(t));
      t = {};
    }
    left_[std::size_t(v)] = 0;
    return all;
  }
  /// How far an entry of `t` moves for each possibility of u.
  constexpr std::size_t step(const table& t, int u) const {
    std::size_t s = 1;
    for (std::size_t k = t.over.size(); k-- > 0;) {
      if (t.over[k] == u) return s;
      s *= std::size_t(n_.possibilities(t.over[k]));
    }
    return 0;
  }
  /// A table while v is eliminated: where it is read, and how far that moves with v and each
  /// neighbour.
  struct reader {
    const double* at{};
    std::size_t own{};
    list<std::size_t> steps;
  };
  /// Tables by the last of the neighbours that they are over, from those that are over none.
  constexpr list<list<reader>> by_last_neighbour(const list<table>& all, int v,
                                                 const list<int>& neighbours) const {
    list<list<reader>> levels(neighbours.size() + 1);
    for (const table& t : all) {
      reader r{t.cost.data(), step(t, v), {}};
      std::size_t level = 0;
      for (std::size_t d = 0; d < neighbours.size(); ++d) {
        r.steps.push_back(step(t, neighbours[d]));
        if (r.steps.back()) level = d + 1;
      }
      levels[level].push_back(std::move(r));
    }
    return levels;
  }
  constexpr void eliminate(int v) {
    gone g{v, neighbours(v), {}};
    const list<table> all = take(v);
    const auto size = std::size_t(entries(g.neighbours));
    table made{g.neighbours, list<double>(size, 0.0)};
    g.best.assign(size, 0);
    const std::size_t depth = g.neighbours.size();
    const auto count = std::size_t(n_.possibilities(v));
    list<list<reader>> levels = by_last_neighbour(all, v, g.neighbours);
    // The last neighbour changes with each entry, and those before it seldom: what the tables over
    // them come to is kept.
    list<double> sums((depth + 1) * count, 0.0);  // [level][possibility of v]
    std::size_t changed = 0;                      // the first level that is summed again
    list<int> digit(depth, 0);
    for (std::size_t k = 0; k < size; ++k) {
      double* sum = sums.data() + changed * count;
      for (std::size_t level = changed; level <= depth; ++level, sum += count) {
        for (std::size_t i = 0; i < count; ++i) sum[i] = level ? sums[(level - 1) * count + i] : 0;
        for (const reader& r : levels[level]) {
          const double* cost = r.at;
          for (std::size_t i = 0; i < count; ++i) sum[i] += cost[i * r.own];
        }
      }
      sum -= count;
      std::size_t best = 0;
      for (std::size_t i = 1; i < count; ++i)
        if (sum[i] < sum[best]) best = i;
      made.cost[k] = sum[best];
      g.best[k] = int(best);
      for (std::size_t d = depth; d-- > 0;) {
        const int last = n_.possibilities(g.neighbours[d]) - 1;
        const bool more = digit[d] < last;
        for (std::size_t level = d + 1; level <= depth; ++level)
          for (reader& r : levels[level]) r.at += (more ? 1 : -last) * std::ptrdiff_t(r.steps[d]);
        digit[d] = more ? digit[d] + 1 : 0;
        changed = d + 1;
        if (more) break;
      }
    }
    gone_.push_back(std::move(g));
    if (!made.over.empty()) add(std::move(made));
  }
  /// Of the choices that have been forced least often that which meets most others.
  constexpr int most_connected() const {
    int v = -1;
    std::size_t most = 0;
    for (std::size_t u = 0; u < left_.size(); ++u) {
      if (!left_[u]) continue;
      const std::size_t count = neighbours(int(u)).size() + 1;
      const bool newer = v < 0 || forced_before_[u] < forced_before_[std::size_t(v)];
      if (!newer && (count <= most || forced_before_[u] > forced_before_[std::size_t(v)])) continue;
      most = count;
      v = int(u);
    }
    return v;
  }
  /// What is cheapest for a choice if each of its tables went its own way.
  constexpr int guess(int v) const {
    double best = std::numeric_limits<double>::max();
    int possibility = 0;
    for (int i = 0; i < n_.possibilities(v); ++i) {
      double sum = 0;
      for (int id : met_by_[std::size_t(v)]) {
        double least = std::numeric_limits<double>::max();
        for_each_of(tables_[std::size_t(id)], v, i, [&](double c) { least = std::min(least, c); });
        sum += least;
      }
      if (sum >= best) continue;
      best = sum;
      possibility = i;
    }
    return possibility;
  }
  constexpr void force(int v, int possibility) {
    for (const table& t : take(v)) {
      table rest;
      for (int u : t.over)
        if (u != v) rest.over.push_back(u);
      for_each_of(t, v, possibility, [&](double c) { rest.cost.push_back(c); });
      if (!rest.over.empty()) add(std::move(rest));
    }
  }
  /// Calls f(cost) for the entries of a table that have possibility i of v, in order.
  template <class F>
  constexpr void for_each_of(const table& t, int v, int i, F f) const {
    const std::size_t s = step(t, v);
    const auto count = std::size_t(n_.possibilities(v));
    for (std::size_t k = 0; k < t.cost.size(); ++k)
      if (k / s % count == std::size_t(i)) f(t.cost[k]);
  }

  const cost_network& n_;
  std::int64_t most_;
  list<table> tables_;
  list<list<int>> met_by_;  ///< the tables over each choice
  flags left_;
  list<std::int64_t> size_;  ///< of the table that would replace each choice; 0: not known
  list<gone> gone_;
  list<int> forced_;
  list<int> kept_;
  flags forced_before_;
};

}  // namespace detail

constexpr network_decision least_cost(const cost_network& n, std::int64_t most_entries) {
  detail::eliminator first(n, most_entries);
  network_decision best = first.run();
  if (best.forced == 0) return best;
  double least = n.cost(best.decision);
  flags forced(n.alone.size(), 0);
  for (int v : first.forced()) ++forced[std::size_t(v)];
  for (int vain = 0, round = 0; vain < 4 && round < 20; ++round) {
    detail::eliminator again(n, most_entries);
    again.keep(best.decision, forced);
    const network_decision d = again.run();
    for (int v : again.forced()) ++forced[std::size_t(v)];
    const double cost = n.cost(d.decision);
    vain = cost < least * (1 - 1e-9) ? 0 : vain + 1;
    if (cost >= least) continue;
    least = cost;
    best.decision = d.decision;
  }
  return best;
}

}  // namespace cella::parallel
