// Graphs that a model traces at run time, for batches that nothing was compiled for and in
// development: planned, if the program has the kernels, else interpreted.
#pragma once

#include <cella/graph/once.hpp>
#include <cella/runtime/recently_used.hpp>
#include <cella/train/runtime_path.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#if defined(CELLA_KERNELS)
#include <cella/runtime/compiled_once.hpp>
#include <cella/runtime/loaded_program.hpp>
#else
#include <cella/backend/default_kernels.hpp>
#endif

namespace cella::detail {

// Objects that are linked into one program may have been compiled with and without the kernels.
#if defined(CELLA_KERNELS)
inline namespace with_kernels {
#else
inline namespace without_kernels {
#endif

/// A graph that was traced at run time, and its plan, if this program has the kernels.
class traced_step {
 public:
  traced_step(graph traced, dtype precision, thread_pool* threads);
  void run(runtime_path& on);
  /// Whether it gives states, or the random state, new values.
  bool changes_inputs() const { return graph_.changes_inputs(); }

 private:
  graph graph_;
#if defined(CELLA_KERNELS)
  std::optional<loaded_program> planned_;
  std::uint64_t prepared_{};  ///< the version of the parameters that it has prepared for
#endif
};
/// Traced graphs by the number of samples that they are for: all else of their shapes is the
/// model's. Each keeps an arena, so there are few.
class traced_steps {
 public:
  traced_steps();
  traced_steps(traced_steps&&) noexcept;
  traced_steps& operator=(traced_steps&&) noexcept;
  ~traced_steps();
  /// What `trace` traced when it was first asked for so many rows.
  traced_step& get(std::int64_t rows, const std::function<void(builder&)>& trace,
                   trace_options options, thread_pool* threads);

 private:
  static constexpr std::size_t most = 8;
  recently_used<std::int64_t, traced_step> known_{most};
};

}  // with or without kernels

/// Computes operations one by one: kernels for numbers of type T.
template <class T>
constexpr compute_function compute_alone() {
#if defined(CELLA_KERNELS)
  return &compiled_once::compute;
#else
  return &default_backend::compute<T>;
#endif
}

}  // namespace cella::detail

#if CELLA_HAS_BODIES
#include <cella/train/traced_steps_body.hpp>
#endif
