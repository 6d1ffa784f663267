// The CPU as a back end. What it needs to run programs stands in run/runner.hpp, and what computes
// operations one by one in run/eager.hpp; what plans are made of at run time in
// run/loaded_runner.hpp.
#pragma once

#include <cella/backend/cpu/plan/planning.hpp>
#include <cella/backend/host/buffer.hpp>
#include <cella/graph/op_info.hpp>

namespace cella::cpu {

template <class P>
class runner;
template <class T>
class loaded_runner;
class flush_denormals;

struct backend {
  static constexpr std::string_view name = "cpu";
  using planning = cpu::planning;
  /// Its kernels read and write what the caller has.
  static constexpr bool host_memory = true;
  using buffer = aligned_buffer;
  template <class P>
  using runner = cpu::runner<P>;
  /// What runs graphs that are planned at run time, of element type T.
  template <class T>
  using loaded_runner = cpu::loaded_runner<T>;

  /// What floating-point arithmetic is set to while programs run, to the end of the scope.
  using arithmetic = flush_denormals;
  /// Computes one operation on plain tensors; a `compute_function`. Fast kernels are compiled for
  /// the element types `Ts` only.
  template <class... Ts>
  static void compute(const op_info& op, const attributes& options, span<const tensor_ref> in,
                      span<const tensor_ref> out);
};

}  // namespace cella::cpu
