// Runs a partitioned graph on threads as ranks, node by node, and puts the parts together.
#pragma once

#include <cella/parallel/partition.hpp>
#include <cella/parallel/rank_program.hpp>
#include <cella/parallel/thread_ranks.hpp>
#include <random>
#include <vector>

#include "support/traced.hpp"

namespace cella::test {

/// Random numbers between 0.1 and 0.9; of integers 0 and 1, which are indices of any axis.
inline valued_tensor random_tensor(const tensor_type& t, std::mt19937& random) {
  valued_tensor v{t, {}};
  for (std::int64_t i = 0; i < t.size(); ++i) {
    const double u = std::uniform_real_distribution(0.1, 0.9)(random);
    v.values.push_back(is_floating(t.element) || is_complex(t.element) ? u : double(int(2 * u)));
  }
  return v;
}

/// The part of a tensor that a rank has.
inline valued_tensor part_of(const valued_tensor& whole, const parallel::layout& l,
                             const parallel::device_mesh& m, int rank) {
  bindings memory;
  const tensor_ref x = memory.store(whole);
  const tensor_type t = parallel::part_of(whole.type, l, m, rank);
  const tensor_ref y = memory.store({t, std::vector<double>(std::size_t(t.size()), 0.0)});
  parallel::copy_part(x, l, m, rank, y);
  return read(y);
}

/// The outputs of all ranks: [rank][output].
inline std::vector<std::vector<valued_tensor>> run_on_ranks(
    const graph& g, const parallel::device_mesh& m, const parallel::assignment& choices,
    const std::vector<valued_tensor>& inputs) {
  parallel::thread_ranks ranks(m);
  std::vector<std::vector<valued_tensor>> all(std::size_t(m.ranks()));
  ranks.run([&](int r, const communicator& c) {
    const communicator_scope scope(c);
    const parallel::partitioned p = parallel::partition(g, m, choices, r);
    std::vector<valued_tensor> own;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      own.push_back(part_of(inputs[i], p.inputs[i], m, r));
    all[std::size_t(r)] = run_graph(p.graph, own);
  });
  return all;
}

}  // namespace cella::test
