// From one layout of a tensor to another: the cheapest chain of moves, and what moves cost.
#pragma once

#include <algorithm>
#include <cella/graph/list.hpp>
#include <cella/parallel/layout.hpp>

namespace cella::parallel {

/// What one collective operation does to a layout: along one axis of the mesh the tensor is cut in
/// `from` before and in `to` behind it; either may be `replicated`, and `from` may be `partial`.
struct layout_move {
  move_kind kind{};
  std::int8_t mesh_axis{};
  std::int8_t from{}, to{};
};

/// The messages that a rank sends one after the other when a move goes round a ring of `ranks`.
/// `bytes` is what it has of the tensor before the move.
struct ring_messages {
  double count{};
  double bytes{};  ///< of all
};
constexpr ring_messages messages_of(move_kind kind, double bytes, int ranks) {
  const double n = ranks;
  switch (kind) {
    case move_kind::own_part:
      return {0, 0};
    case move_kind::all_gather:
      return {n - 1, (n - 1) * bytes};
    case move_kind::all_to_all:
    case move_kind::reduce_scatter:
      return {n - 1, (n - 1) / n * bytes};
    default:
      return {2 * (n - 1), 2 * (n - 1) / n * bytes};
  }
}

/// The time of a move and the bytes that a rank sends: of messages round a ring, one after the
/// other. `bytes` is what a rank has of the tensor before the move.
struct move_cost {
  double seconds{};
  double bytes{};
};
constexpr move_cost cost_of(move_kind kind, double bytes, const mesh_axis& a, const device& d) {
  if (kind == move_kind::own_part) return {2 * bytes / a.size / d.memory_bytes_per_second, 0};
  const ring_messages r = messages_of(kind, bytes, a.size);
  const link_speed s = a.speed(kind);
  return {r.count * s.latency + r.bytes / s.bytes_per_second, r.bytes};
}

/// Moves, one after the other, and what they cost together.
struct move_chain {
  list<layout_move> moves;
  move_cost cost;
};

/// The cheapest chains of moves from one layout of a tensor, of which each rank has a part, to all
/// others: Dijkstra's algorithm over layouts that are one move apart.
class move_chains {
 public:
  constexpr move_chains(const tensor_type& t, const layout& from, const device_mesh& m)
      : type_(t), mesh_(m) {
    std::size_t count = 1;
    for (int a = 0; a < m.axis_count; ++a) count *= std::size_t(t.rank() + 2);
    places_.resize(count);
    places_[index(from)] = {from, {}, {}, -1, true, false};
    run();
  }

  /// Whether there is a way: none leads to sums that are left open, but where they are already.
  constexpr bool reaches(const layout& to) const { return places_[index(to)].reached; }
  constexpr move_cost cost_to(const layout& to) const { return places_[index(to)].cost; }
  constexpr move_chain chain_to(const layout& to) const {
    move_chain chain;
    std::size_t i = index(to);
    chain.cost = places_[i].cost;
    for (; places_[i].before >= 0; i = std::size_t(places_[i].before))
      chain.moves.push_back(places_[i].last);
    std::reverse(chain.moves.begin(), chain.moves.end());
    return chain;
  }

 private:
  struct place {
    layout at;
    move_cost cost;
    layout_move last;
    int before = -1;
    bool reached{}, done{};
  };

  constexpr std::size_t index(const layout& l) const {
    std::size_t i = 0;
    for (int a = 0; a < mesh_.axis_count; ++a)
      i = i * std::size_t(type_.rank() + 2) + std::size_t(l[a] - partial);
    return i;
  }
  constexpr void run() {
    for (;;) {
      const place* best = nullptr;
      for (const place& p : places_)
        if (p.reached && !p.done && (!best || p.cost.seconds < best->cost.seconds)) best = &p;
      if (!best) return;
      const std::size_t i = index(best->at);
      places_[i].done = true;
      for (int a = 0; a < mesh_.axis_count; ++a) expand(i, a);
    }
  }
  /// Whether an axis may begin or cease to cut a dimension: parts of the axes behind it lie within
  /// its own.
  constexpr bool is_last(const layout& l, int a, int dimension) const {
    for (int b = a + 1; b < mesh_.axis_count; ++b)
      if (l[b] == dimension && mesh_[b].size > 1) return false;
    return true;
  }
  constexpr void expand(std::size_t i, int a) {
    const layout l = places_[i].at;
    const std::int8_t d = l[a];
    if (d >= 0 && !is_last(l, a, d)) return;
    if (d >= 0) go(i, {move_kind::all_gather, std::int8_t(a), d, replicated});
    if (d == partial) go(i, {move_kind::all_reduce, std::int8_t(a), d, replicated});
    const move_kind kind = d >= 0         ? move_kind::all_to_all
                           : d == partial ? move_kind::reduce_scatter
                                          : move_kind::own_part;
    if (kind == move_kind::reduce_scatter && mesh_[a].whole_sums) return;
    for (std::int8_t e = 0; e < type_.rank(); ++e)
      if (e != d && is_last(l, a, e)) go(i, {kind, std::int8_t(a), d, e});
  }
  constexpr void go(std::size_t i, const layout_move& step) {
    const place from = places_[i];
    layout l = from.at;
    l[step.mesh_axis] = step.to;
    if (!can_lie(type_.shape, l, mesh_)) return;
    move_cost c{};
    if (mesh_[step.mesh_axis].size > 1)
      c = cost_of(step.kind, double(part_of(type_, from.at, mesh_).bytes()), mesh_[step.mesh_axis],
                  mesh_.each);
    c.seconds += from.cost.seconds;
    c.bytes += from.cost.bytes;
    place& p = places_[index(l)];
    if (!p.reached || (!p.done && c.seconds < p.cost.seconds))
      p = {l, c, step, int(i), true, false};
  }

  const tensor_type type_;
  const device_mesh& mesh_;
  list<place> places_;  ///< one for each layout
};

/// The cheapest chain from one layout of a tensor to another; none if they are the same.
constexpr move_chain cheapest_chain(const tensor_type& t, const layout& from, const layout& to,
                                    const device_mesh& m) {
  if (from == to) return {};
  return move_chains(t, from, m).chain_to(to);
}
/// Just what it costs.
constexpr move_cost redistribution_cost(const tensor_type& t, const layout& from, const layout& to,
                                        const device_mesh& m) {
  return from == to ? move_cost{} : move_chains(t, from, m).cost_to(to);
}

}  // namespace cella::parallel
