// What one rank runs: its graph, planned at run time, over its parts of the inputs.
#pragma once

#include <cella/parallel/plan.hpp>
#include <cella/parallel/rank_inputs.hpp>
#include <cella/passes/simplify/dce.hpp>
#include <cella/runtime/loaded_program.hpp>

namespace cella::parallel {

/// The program of one rank with the memory of its inputs. Needs `cella::kernels`.
class rank_program : public rank_inputs {
 public:
  /// `plan` is one for `g` and has no fault. `c` reaches the other ranks and outlives this;
  /// `threads` may be null. The element type is that of parameters, f32 or f64.
  rank_program(const graph& g, const parallel_plan& plan, int rank, const communicator& c,
               dtype element = dtype::f32, thread_pool* threads = nullptr)
      : rank_program(g, rank_of(plan, g, rank), plan.mesh, rank, c, element, threads) {}

  /// One step; all ranks call it. Inputs that the program updates have their new values then.
  void operator()() {
    if (has_changed_) program_.prepare_again();
    has_changed_ = false;
    const communicator_scope scope(communicator_);
    program_();
  }
  /// This rank's part of input `i` lies in memory of the caller from now on.
  void bind(int i, std::byte* at) {
    move(i, at);
    program_.bind(i, at);
  }
  /// Result `k` of the last step, which all ranks have as a whole.
  tensor_ref result(int k) const { return program_.result(k); }
  /// Prints the graph, the steps and the memory.
  void explain(std::ostream& out, std::size_t width = 100) const { program_.explain(out, width); }

 private:
  rank_program(const graph& g, const partitioned& p, const device_mesh& m, int rank,
               const communicator& c, dtype element, thread_pool* threads)
      : rank_inputs(m, rank, c), program_(dce(p.graph), element, threads) {
    for (std::size_t i = 0; i < p.inputs.size(); ++i) {
      add(g, p.inputs[i], p.graph.type(p.graph.input(int(i))));
      program_.bind(int(i), parts_.back().data);
    }
  }

  loaded_program program_;
};

}  // namespace cella::parallel
