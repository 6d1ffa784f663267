// Graphs that a model traces at run time, for batches that nothing was compiled for and in
// development: planned, if the program has the kernels, else interpreted.
#pragma once

#include <cella/passes/simplify/dce.hpp>
#include <cella/runtime/compiled_once.hpp>
#include <cella/runtime/recently_used.hpp>
#include <cella/train/runtime_path.hpp>
#include <cstdint>
#include <optional>
#include <type_traits>

namespace cella::detail {

/// A graph that was traced at run time, and its plan, if this program has the kernels.
template <bool HasKernels = has_compiled_kernels>
class traced_step {
 public:
  traced_step(graph traced, dtype precision, thread_pool* threads)
      : graph_(optimized(std::move(traced))) {
    if constexpr (HasKernels) {
      if (loaded_program::refusal(graph_, precision).empty())
        planned_.emplace(graph_, precision, threads);
    }
  }
  void run(runtime_path& on) {
    if constexpr (HasKernels) {
      if (planned_) {
        if (prepared_ != on.version()) planned_->prepare_again();
        prepared_ = on.version();
        return on.run(graph_, *planned_);
      }
    }
    on.run(graph_);
  }

 private:
  /// The passes prepare a graph for a plan. The interpreter gains little by them, and a program
  /// that interprets would have to compile them all.
  static graph optimized(graph g) {
    if constexpr (HasKernels)
      return compiled_once::optimize(std::move(g));
    else
      return dce(std::move(g));
  }

  struct nothing {};
  graph graph_;
  std::conditional_t<HasKernels, std::optional<loaded_program>, nothing> planned_;
  std::uint64_t prepared_{};  ///< the version of the parameters that it has prepared for
};
/// Traced graphs by the number of samples that they are for: all else of their shapes is the
/// model's. Each keeps an arena, so there are few.
class traced_steps {
 public:
  template <class Cell, std::size_t Count>
  traced_step<>& get(std::int64_t rows, Cell& cell, const std::array<tensor_type, Count>& types,
                     trace_options options, thread_pool* threads) {
    return known_.get(rows, [&] {
      return traced_step<>(trace(cell, types, options), options.precision, threads);
    });
  }

 private:
  static constexpr std::size_t most = 8;
  recently_used<std::int64_t, traced_step<>> known_{most};
};
/// Computes operations one by one: kernels for numbers of type T.
template <class T>
constexpr compute_function compute_alone() {
  if constexpr (has_compiled_kernels)
    return &compiled_once::compute;
  else
    return &default_backend::compute<T>;
}

}  // namespace cella::detail
