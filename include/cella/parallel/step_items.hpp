// What a rank does in a step, one after the other, with the time of each by the model of costs.
#pragma once

#include <cella/parallel/exchange_operations.hpp>
#include <cella/parallel/node_costs.hpp>
#include <cella/parallel/started.hpp>

namespace cella::parallel {

enum class item_kind : std::uint8_t {
  compute,
  move,    ///< a collective operation, which ranks begin when all have come
  start,   ///< of a sum or a message that goes on while the rank computes
  finish,  ///< waits for it
  wait     ///< for another stage; only of timelines
};

/// One thing that a rank does.
struct step_item {
  item_kind kind{};
  double seconds{};          ///< of computing, or of the move once all ranks have come
  double bytes{};            ///< that a rank sends
  int mesh_axis = -1;        ///< of a move
  int ticket = -1;           ///< of a start and its finish: its number
  double overlap = 1;        ///< of a start: the share of its time that goes on meanwhile
  std::string_view label{};  ///< the cell, or what kind of move it is
  std::string_view cell{};
};

namespace detail {

/// The move that a node is.
constexpr move_kind kind_of_collective(const node& x) {
  if (is<all_gather_op>(x)) return move_kind::all_gather;
  if (is<all_to_all_op>(x)) return move_kind::all_to_all;
  if (is<reduce_scatter_op>(x)) return move_kind::reduce_scatter;
  if (is<all_reduce_op>(x) || is<start_all_reduce_op>(x)) return move_kind::all_reduce;
  return move_kind::own_part;
}
constexpr move_cost cost_of_collective(const graph& g, node_id n, const device_mesh& m) {
  const node& x = g.nodes[std::size_t(n)];
  mesh_axis a = m[x.attributes.as<collective_options>().mesh_axis];
  if (is<start_all_reduce_op>(x) && a.started.bytes_per_second > 0)
    a.measured[std::size_t(move_kind::all_reduce)] = a.started;
  return cost_of(kind_of_collective(x), double(g.type(g.operand(n, 0)).bytes()), a, m.each);
}

/// What node `n` of the graph of a rank is.
constexpr step_item item_of(const graph& g, node_id n, const device_mesh& m) {
  const node& x = g.nodes[std::size_t(n)];
  step_item s;
  s.cell = g.view(x.cell);
  if (is<finish_all_reduce_op>(x)) {
    s.kind = item_kind::finish;
    s.label = "all_reduce";
    s.ticket = int(g.operand(n, 0));
    s.mesh_axis = x.attributes.as<collective_options>().mesh_axis;
    return s;
  }
  if (is_collective(x.op) || is<start_all_reduce_op>(x)) {
    const move_cost c = cost_of_collective(g, n, m);
    s.kind = item_kind::move;
    s.seconds = c.seconds;
    s.bytes = c.bytes;
    s.label = move_name(kind_of_collective(x));
    s.mesh_axis = x.attributes.as<collective_options>().mesh_axis;
    if (is<start_all_reduce_op>(x)) {
      s.kind = item_kind::start;
      s.ticket = int(n);
      s.overlap = m[s.mesh_axis].overlap;
    }
    return s;
  }
  if (is<start_exchange_op>(x) || is<finish_exchange_op>(x)) {
    const auto e = x.attributes.as<exchange_options>();
    const bool starts = is<start_exchange_op>(x);
    if (starts || e.from >= 0) {
      const mesh_axis& a = m[e.mesh_axis];
      const double bytes = double(g.type(g.operand(n, 0)).bytes());
      s.kind = starts ? item_kind::start : item_kind::finish;
      s.label = "ring";
      s.mesh_axis = e.mesh_axis;
      s.ticket = -2 - e.tag;  // those of sums are nodes
      s.overlap = a.overlap;
      // What is expected meanwhile takes as long as what is sent.
      if (starts) s.seconds = a.latency + bytes / a.bytes_per_second;
      if (starts && e.to >= 0) s.bytes = bytes;
      return s;
    }
  }
  s.seconds = seconds_of_node(g, n, m.each);
  s.label = s.cell.empty() ? std::string_view("(step)") : s.cell;
  return s;
}

}  // namespace detail

/// What the rank with this graph does.
constexpr list<step_item> items_of(const graph& g, const device_mesh& m) {
  list<step_item> all;
  for (node_id n : g.regions[0].nodes) {
    const node& x = g.nodes[std::size_t(n)];
    if (x.op != &input_info_of && x.op != &get_info_of) all.push_back(detail::item_of(g, n, m));
  }
  return all;
}

/// When sums and messages that are under way have arrived: messages of one axis follow each other.
/// A rank waits for what is left then, and makes itself what does not go on by itself.
class sums_under_way {
 public:
  constexpr void start(const step_item& s, double now) {
    double& free = link_free_[std::size_t(s.mesh_axis)];
    free = std::max(free, now) + s.overlap * s.seconds;
    sums_.push_back({s.ticket, free, (1 - s.overlap) * s.seconds});
  }
  /// The time at which a rank that asks for it at `now` has it.
  constexpr double finish(const step_item& s, double now) const {
    for (const sum& one : sums_)
      if (one.ticket == s.ticket) return std::max(one.arrives, now) + one.left;
    return now;
  }

 private:
  struct sum {
    int ticket{};
    double arrives{}, left{};
  };
  std::array<double, max_mesh_axes> link_free_{};
  list<sum> sums_{};
};

}  // namespace cella::parallel
