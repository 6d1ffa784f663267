// Sums over all ranks that only updates read, in few messages, which are under way while the
// backward pass goes on.
#pragma once

#include <cella/graph/copy.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/parallel/only_updates.hpp>
#include <cella/parallel/started.hpp>

namespace cella::parallel {

/// The graph of a rank with its all_reduce nodes that only updates read (of gradients) in buckets:
/// those of one axis of the mesh and one element type, one behind the other in their order, until a
/// bucket has `bytes`. A bucket is started where the last of its numbers is known, and waited for
/// behind all that does not need it. 0: the graph as it is.
constexpr graph bucket_gradients(const graph& g, std::int64_t bytes);

// ------------------------------------------------------------------------------------------------

namespace detail {

class bucketer {
 public:
  constexpr bucketer(const graph& g, std::int64_t bytes)
      : g_(g), bytes_(bytes), importer_(b_, g), here_(g.nodes.size(), no_node) {}

  constexpr graph run() {
    find();
    importer_.copy_inputs([&](node_id n, node_id here) { here_[std::size_t(n)] = here; });
    const region& main = g_.regions[0];
    for (node_id n : main.nodes) {
      if (bucket_[std::size_t(n)] >= 0)
        collect(n);
      else if (!late_[std::size_t(n)])
        copy(n);
    }
    for (bucket& one : buckets_)
      if (!one.is_started) start(one);
    for (node_id n : main.nodes)
      if (late_[std::size_t(n)]) copy(n);
    importer_.copy_outputs([&](node_id n) { return value(n); });
    return std::move(b_.g);
  }

 private:
  struct bucket {
    collective_options how;
    dtype element{};
    std::int64_t bytes{};
    list<node_id> sums{};  ///< all_reduce nodes of the old graph
    int left{};            ///< of them, those whose operand is not known yet
    bool is_started{}, is_awaited{};
    node_id flat = no_node, ticket = no_node;
  };

  /// Nodes that products read, in the end: what the backward pass goes on with is no gradient of a
  /// parameter, and waits for nothing.
  constexpr flags read_by_products() const {
    flags read(g_.nodes.size(), 0);
    const list<node_id>& nodes = g_.regions[0].nodes;
    for (std::size_t i = nodes.size(); i-- > 0;) {
      const node& x = g_.nodes[std::size_t(nodes[i])];
      const bool reads = read[std::size_t(nodes[i])] ||
                         x.op->computes == compute_class::contraction ||
                         x.op->computes == compute_class::window;
      for (node_id o : g_.operands(nodes[i])) read[std::size_t(o)] |= reads;
    }
    return read;
  }
  /// Puts sums in buckets. What depends on one is late, and stays out of them.
  constexpr void find() {
    const flags updates = only_updates(g_), goes_on = read_by_products();
    bucket_.assign(g_.nodes.size(), -1);
    late_.assign(g_.nodes.size(), 0);
    for (node_id n : g_.regions[0].nodes) {
      const node& x = g_.nodes[std::size_t(n)];
      for (node_id o : g_.operands(n))
        late_[std::size_t(n)] |= late_[std::size_t(o)] || bucket_[std::size_t(o)] >= 0;
      if (!is<all_reduce_op>(x) || !updates[std::size_t(n)] || late_[std::size_t(n)] ||
          goes_on[std::size_t(n)])
        continue;
      const auto how = x.attributes.as<collective_options>();
      int found = -1;
      for (std::size_t i = 0; i < buckets_.size(); ++i)
        if (buckets_[i].how.mesh_axis == how.mesh_axis && buckets_[i].element == x.type.element &&
            buckets_[i].bytes < bytes_)
          found = int(i);
      if (found < 0) {
        found = int(buckets_.size());
        buckets_.push_back({{how.mesh_axis, how.count}, x.type.element});
      }
      bucket& one = buckets_[std::size_t(found)];
      one.bytes += x.type.bytes();
      one.sums.push_back(n);
      ++one.left;
      bucket_[std::size_t(n)] = found;
    }
  }
  constexpr void copy(node_id n) {
    if (g_.nodes[std::size_t(n)].op == &input_info_of) return;
    ids in;
    for (node_id o : g_.operands(n)) in.push_back(value(o));
    here_[std::size_t(n)] = importer_.copy(n, in);
  }
  constexpr void collect(node_id n) {
    bucket& one = buckets_[std::size_t(bucket_[std::size_t(n)])];
    if (--one.left == 0) start(one);
  }
  constexpr node_id operand_here(node_id sum) { return value(g_.operand(sum, 0)); }
  constexpr void start(bucket& one) {
    b_.current_cell({});
    if (one.sums.size() == 1) {
      one.flat = operand_here(one.sums[0]);
    } else {
      ids parts;
      for (node_id n : one.sums) parts.push_back(reshaped(operand_here(n), flat_shape(n)));
      one.flat = b_.emit(bound<concat_op>(), parts, concat_op::options{0});
    }
    one.ticket = b_.emit(bound<start_all_reduce_op>(), {one.flat}, one.how);
    one.is_started = true;
    started_.push_back(int(&one - &buckets_[0]));
  }
  /// Sums are finished in the order in which they were started.
  constexpr void await(int k) {
    for (int i : started_) {
      bucket& one = buckets_[std::size_t(i)];
      if (one.is_awaited) continue;
      b_.current_cell({});
      const node_id all = b_.emit(bound<finish_all_reduce_op>(), {one.ticket, one.flat}, one.how);
      std::int64_t first = 0;
      for (node_id n : one.sums) {
        const std::int64_t size = g_.type(n).size();
        const node_id own = one.sums.size() == 1 ? all : part(all, first, size);
        here_[std::size_t(n)] = reshaped(own, g_.type(n).shape);
        first += size;
      }
      one.is_awaited = true;
      if (i == k) return;
    }
  }
  constexpr node_id value(node_id n) {
    const int k = bucket_[std::size_t(n)];
    if (k >= 0 && !buckets_[std::size_t(k)].is_awaited) await(k);
    return here_[std::size_t(n)];
  }
  constexpr shape flat_shape(node_id n) const { return {int(g_.type(n).size())}; }
  constexpr node_id reshaped(node_id n, const shape& s) {
    return b_.g.type(n).shape == s ? n : reshape(var{&b_, n}, s).id;
  }
  constexpr node_id part(node_id all, std::int64_t first, std::int64_t size) {
    return slice(var{&b_, all}, 0, int(first), int(first + size)).id;
  }

  const graph& g_;
  const std::int64_t bytes_;
  builder b_;
  graph_importer importer_;
  ids here_;          ///< by old node
  list<int> bucket_;  ///< of each old node, or -1
  flags late_;        ///< by old node: it needs a sum of a bucket
  list<bucket> buckets_;
  list<int> started_;  ///< in their order
};

}  // namespace detail

constexpr graph bucket_gradients(const graph& g, std::int64_t bytes) {
  if (bytes <= 0) return g;
  return detail::bucketer(g, bytes).run();
}

}  // namespace cella::parallel
