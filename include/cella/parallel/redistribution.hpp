// From one layout of a tensor to another: the cheapest chain of moves, and what moves cost.
#pragma once

#include <algorithm>
#include <cella/graph/list.hpp>
#include <cella/parallel/layout.hpp>

namespace cella::parallel {

enum class move_kind : std::uint8_t {
  own_part,
  all_gather,
  all_to_all,
  reduce_scatter,
  all_reduce
};

/// What one collective operation does to a layout: along one axis of the mesh the tensor is cut in
/// `from` before and in `to` behind it; either may be `replicated`, and `from` may be `partial`.
struct layout_move {
  move_kind kind{};
  std::int8_t mesh_axis{};
  std::int8_t from{}, to{};
};

/// The time of a move and the bytes that a rank sends: of messages round a ring, one after the
/// other. `bytes` is what a rank has of the tensor before the move.
struct move_cost {
  double seconds{};
  double bytes{};
};
constexpr move_cost cost_of(move_kind kind, double bytes, const mesh_axis& a, const device& d) {
  const double n = a.size;
  double sent = 0;
  switch (kind) {
    case move_kind::own_part:
      return {2 * bytes / n / d.memory_bytes_per_second, 0};
    case move_kind::all_gather:
      sent = (n - 1) * bytes;
      break;
    case move_kind::all_to_all:
    case move_kind::reduce_scatter:
      sent = (n - 1) / n * bytes;
      break;
    case move_kind::all_reduce:
      sent = 2 * (n - 1) / n * bytes;
      break;
  }
  const double messages = kind == move_kind::all_reduce ? 2 * (n - 1) : n - 1;
  return {messages * a.latency + sent / a.bytes_per_second, sent};
}

/// Moves, one after the other, and what they cost together.
struct move_chain {
  list<layout_move> moves;
  move_cost cost;
};

/// The cheapest chain from one layout of a tensor to another, neither of which cuts a dimension
/// into unequal parts. Precondition: where `to` is partial, so is `from`.
constexpr move_chain cheapest_chain(const tensor_type& t, const layout& from, const layout& to,
                                    const device_mesh& m);

/// Just what the cheapest chain costs.
constexpr move_cost redistribution_cost(const tensor_type& t, const layout& from, const layout& to,
                                        const device_mesh& m) {
  return from == to ? move_cost{} : cheapest_chain(t, from, to, m).cost;
}

// ------------------------------------------------------------------------------------------------

namespace detail {

/// The cheapest way through all layouts, whose neighbours are one move apart: Dijkstra's algorithm.
class chain_search {
 public:
  constexpr chain_search(const tensor_type& t, const layout& from, const layout& to,
                         const device_mesh& m)
      : type_(t), mesh_(m), to_(to) {
    // Dimensions that neither layout cuts are of no use.
    for (int a = 0; a < m.axis_count; ++a) {
      add_dimension(from[a]);
      add_dimension(to[a]);
    }
    reached_.push_back({from, {}, {}, -1, false});
  }

  constexpr move_chain run() {
    for (;;) {
      std::size_t best = reached_.size();
      for (std::size_t i = 0; i < reached_.size(); ++i) {
        if (reached_[i].done) continue;
        if (best == reached_.size() || reached_[i].cost.seconds < reached_[best].cost.seconds)
          best = i;
      }
      if (best == reached_.size()) return {};  // a partial layout that nothing makes
      if (reached_[best].at == to_) return chain_to(int(best));
      reached_[best].done = true;
      for (int a = 0; a < mesh_.axis_count; ++a) expand(int(best), a);
    }
  }

 private:
  struct place {
    layout at;
    move_cost cost;
    layout_move last;
    int before{};
    bool done{};
  };

  constexpr void add_dimension(std::int8_t d) {
    if (d >= 0 && std::find(dimensions_.begin(), dimensions_.end(), d) == dimensions_.end())
      dimensions_.push_back(d);
  }
  /// Whether an axis may begin or cease to cut a dimension: parts of the axes behind it lie within
  /// its own.
  constexpr bool is_last(const layout& l, int a, int dimension) const {
    for (int b = a + 1; b < mesh_.axis_count; ++b)
      if (l[b] == dimension && mesh_[b].size > 1) return false;
    return true;
  }
  constexpr void expand(int i, int a) {
    const layout l = reached_[std::size_t(i)].at;
    const std::int8_t d = l[a];
    if (d >= 0 && !is_last(l, a, d)) return;
    if (d >= 0) go(i, {move_kind::all_gather, std::int8_t(a), d, replicated});
    if (d == partial) go(i, {move_kind::all_reduce, std::int8_t(a), d, replicated});
    const move_kind kind = d >= 0         ? move_kind::all_to_all
                           : d == partial ? move_kind::reduce_scatter
                                          : move_kind::own_part;
    for (std::int8_t e : dimensions_)
      if (e != d && is_last(l, a, e)) go(i, {kind, std::int8_t(a), d, e});
  }
  constexpr void go(int i, const layout_move& step) {
    const place from = reached_[std::size_t(i)];
    layout l = from.at;
    l[step.mesh_axis] = step.to;
    if (!divides(type_.shape, l, mesh_)) return;
    const double bytes = double(part_of(type_, from.at, mesh_).bytes());
    move_cost c{};
    if (mesh_[step.mesh_axis].size > 1)
      c = cost_of(step.kind, bytes, mesh_[step.mesh_axis], mesh_.each);
    c.seconds += from.cost.seconds;
    c.bytes += from.cost.bytes;
    for (place& p : reached_) {
      if (p.at != l) continue;
      if (!p.done && c.seconds < p.cost.seconds) p = {l, c, step, i, false};
      return;
    }
    reached_.push_back({l, c, step, i, false});
  }
  constexpr move_chain chain_to(int i) const {
    move_chain chain;
    chain.cost = reached_[std::size_t(i)].cost;
    for (; reached_[std::size_t(i)].before >= 0; i = reached_[std::size_t(i)].before)
      chain.moves.push_back(reached_[std::size_t(i)].last);
    std::reverse(chain.moves.begin(), chain.moves.end());
    return chain;
  }

  const tensor_type& type_;
  const device_mesh& mesh_;
  layout to_;
  list<std::int8_t> dimensions_;
  list<place> reached_;
};

}  // namespace detail

constexpr move_chain cheapest_chain(const tensor_type& t, const layout& from, const layout& to,
                                    const device_mesh& m) {
  if (from == to) return {};
  return detail::chain_search(t, from, to, m).run();
}

}  // namespace cella::parallel
