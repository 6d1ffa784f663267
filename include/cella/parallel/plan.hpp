// A program divided among ranks: the chosen assignment, the graph of a rank, and what it costs.
#pragma once

#include <cella/parallel/buckets.hpp>
#include <cella/parallel/merge_sums.hpp>
#include <cella/parallel/step_items.hpp>
#include <cella/parallel/strategy.hpp>

namespace cella::parallel {

/// What the nodes of one cell cost a rank.
struct cell_cost {
  std::string_view cell;  ///< of the plan's graph; empty: what belongs to no cell
  double compute_seconds{};
  double move_seconds{};
  double moved_bytes{};  ///< that a rank sends
  int moves{};
};

/// The plan of a program on a mesh.
struct parallel_plan {
  device_mesh mesh;
  parallel::mode mode{};
  assignment choices;           ///< for the nodes of the whole graph
  std::int64_t bucket_bytes{};  ///< of gradients that are summed up together: see bucket_gradients
  partitioned rank;             ///< what rank 0 runs; with a ring, the rank of `shown_rank`
  int forced{};                 ///< choices of the search that did not look ahead
  bool fits = true;             ///< within the memory of a device, by the model
  double bytes_on_device{};     ///< by the model: inputs and stored results of a rank
  text fault{};

  /// The time of a step by the model: that of all nodes of a rank, one after the other. Of sums
  /// that are under way meanwhile what is waited for counts.
  constexpr double seconds() const;
  /// The rows of the printed plan, in the order in which cells come.
  constexpr list<cell_cost> costs() const;
};

/// Whether attention `n` is a ring in the plan of `g`, and along which mesh axis; -1: it is not.
constexpr int ring_axis(const parallel_plan& p, const graph& g, node_id n) {
  return ring_axis(g, n, p.choices[std::size_t(n)].cut, p.mesh);
}
constexpr bool has_rings(const parallel_plan& p, const graph& g) {
  for (node_id n : g.regions[0].nodes)
    if (ring_axis(p, g, n) >= 0) return true;
  return false;
}
/// The rank whose graph stands for all in the plan: the first, which has the largest part. Where
/// attention is a ring, the last: in a window the first ones have less before them.
constexpr int shown_rank(const parallel_plan& p, const graph& g) {
  return has_rings(p, g) ? p.mesh.ranks() - 1 : 0;
}

/// What a rank runs of the graph that the plan was made for.
constexpr partitioned rank_of(const parallel_plan& p, const graph& g, int rank) {
  partitioned part = partition(g, p.mesh, p.choices, rank, p.mode == mode::zero3);
  if (part.fault.empty()) part.graph = bucket_gradients(merge_sums(part.graph), p.bucket_bytes);
  return part;
}

/// Divides `g`, which has been through the passes. Where that is impossible the plan has a fault.
constexpr parallel_plan make_parallel_plan(const graph& g, const device_mesh& m, const strategy& s,
                                           const search_options& options = {}) {
  parallel_plan p;
  p.mesh = m;
  p.mode = s.mode;
  p.bucket_bytes = s.bucket_bytes;
  const stated_space stated = space_of(g, m, s);
  p.fault = stated.fault;
  if (!p.fault.empty()) return p;
  const search_result found = search(g, m, stated.space, options);
  p.forced = found.forced;
  p.fits = found.fits;
  p.bytes_on_device = found.bytes;
  p.choices = found.choices;
  if (!p.fits) {
    const double limit = options.memory_bytes > 0 ? options.memory_bytes : m.each.memory_bytes;
    p.fault = text() << "on the mesh " << mesh_text(m) << " a rank needs "
                     << std::int64_t(found.bytes) << " bytes at least, but has "
                     << std::int64_t(limit) << "; take more ranks, a smaller batch, or mode zero3";
    return p;
  }
  p.rank = rank_of(p, g, shown_rank(p, g));
  p.fault = p.rank.fault;
  return p;
}

/// The same at run time; throws `model_error` with the fault.
inline parallel_plan plan_for(const graph& g, const device_mesh& m, const strategy& s,
                              const search_options& options = {}) {
  parallel_plan p = make_parallel_plan(g, m, s, options);
  if (!p.fault.empty()) throw model_error(p.fault);
  return p;
}

// ------------------------------------------------------------------------------------------------

constexpr list<cell_cost> parallel_plan::costs() const {
  list<cell_cost> rows;
  double now = 0;
  sums_under_way sums;
  for (const step_item& s : items_of(rank.graph, mesh)) {
    cell_cost* row = nullptr;
    for (cell_cost& r : rows)
      if (r.cell == s.cell) row = &r;
    if (!row) row = &rows.emplace_back(cell_cost{s.cell});
    double seconds = s.seconds;
    if (s.kind == item_kind::start) {
      sums.start(s, now);
      seconds = 0;
    }
    if (s.kind == item_kind::finish) seconds = sums.finish(s, now) - now;
    (s.kind == item_kind::compute ? row->compute_seconds : row->move_seconds) += seconds;
    row->moved_bytes += s.bytes;
    row->moves += s.bytes > 0;
    now += seconds;
  }
  return rows;
}
constexpr double parallel_plan::seconds() const {
  double sum = 0;
  for (const cell_cost& r : costs()) sum += r.compute_seconds + r.move_seconds;
  return sum;
}

}  // namespace cella::parallel
