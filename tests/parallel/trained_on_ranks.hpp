// Training steps on threads as ranks, and the losses that they have.
#pragma once

#include <doctest/doctest.h>

#include <cella/parallel/divide.hpp>
#include <cella/parallel/rank_program.hpp>
#include <cella/parallel/thread_ranks.hpp>
#include <vector>

#include "trained_net.hpp"

namespace cella::test {

/// The losses of some steps by a plan, the same on all ranks.
inline std::vector<double> losses_on_ranks(const trained_net& t, const parallel::parallel_plan& p,
                                           int steps) {
  parallel::thread_ranks ranks(p.mesh);
  std::vector<std::vector<double>> losses(std::size_t(p.mesh.ranks()));
  ranks.run([&](int r, const communicator& c) {
    parallel::rank_program run(t.step, p, r, c);
    for (std::size_t i = 0; i < t.first.values.size(); ++i) run.set(int(i), t.first.values[i]);
    for (int s = 0; s < steps; ++s) {
      run();
      losses[std::size_t(r)].push_back(read_element(run.result(0), 0));
    }
  });
  for (const auto& l : losses) CHECK(l == losses[0]);
  return losses[0];
}

/// The same of a step whose parameters may have been taken apart.
inline std::vector<double> losses_on_ranks(const trained_net& t, const parallel::divided_graph& d,
                                           int steps) {
  trained_net apart{d.graph, {}};
  for (std::size_t i = 0; i < d.graph.inputs.size(); ++i) {
    const parallel::row_block block = parallel::block_of(d.graph.view(d.graph.inputs[i].name));
    for (std::size_t k = 0; k < t.step.inputs.size(); ++k)
      if (t.step.view(t.step.inputs[k].name) == block.whole)
        apart.first.values.push_back(parallel::block_in(t.first.values[k], block));
  }
  return losses_on_ranks(apart, d.plan, steps);
}

}  // namespace cella::test
