// Runs a cell without a program, on the memory of a model: eagerly, or as a graph that was traced
// at run time for a batch size that nothing was compiled for.
#pragma once

#include <cella/backend/host/buffer.hpp>
#include <cella/graph/once.hpp>
#include <cella/runtime/interpreter.hpp>
#include <cella/runtime/loaded_program.hpp>
#include <cella/runtime/parameters.hpp>
#include <cella/runtime/step_number.hpp>
#include <cella/train/slots.hpp>
#include <cella/transform/trace.hpp>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace cella {

/// A run-time number of the step, by name: `{"learning_rate", 0.1}`.
struct named_scalar {
  std::string_view name;
  double value{};
};

/// What a graph's inputs stand for. Parameters, states and slots are found by name; updates are
/// written back to them.
struct input_memory {
  const parameter_store* parameters{};
  const slot_store* slots{};
  std::span<const tensor_ref> arguments;
  std::span<const named_scalar> scalars;
  /// Others read the parameters and states at the same time: updates are refused.
  bool shared{};
};

/// Thrown where a net that has state of its own would be asked by several threads at once.
[[noreturn]] void refuse_shared_state();
/// Thrown where a step reads an argument that is nowhere.
[[noreturn]] void refuse_null_column(std::string_view name);

/// The values of one run. They live as long as this object.
class runtime_path final : public builder::evaluator {
 public:
  /// `with` computes single operations.
  explicit runtime_path(const input_memory& memory, compute_function with = &cella::compute);
  ~runtime_path();

  /// Runs a traced graph.
  void run(const graph& g);
  /// Changes when the parameters do.
  std::uint64_t version() const { return memory_.parameters ? memory_.parameters->version() : 0; }
  /// Runs a traced graph that has been planned.
  void run(const graph& g, loaded_program& planned);
  /// Runs what `trace` appends to a builder, node by node: the cell that it traces may read values,
  /// print them and branch on them.
  void run_eagerly(const std::function<void(builder&)>& trace, trace_options options = {});

  /// Result `k`, row-major.
  const tensor_ref& result(int k) const { return results_[std::size_t(k)]; }

  void evaluate(const graph& g, node_id n) override;
  double read(node_id n, std::int64_t i) const override;

 private:
  void bind_operands(const graph& g, std::span<const node_id> operands);
  void bind(const graph& g, int i);
  tensor_ref locate(const input_info& in, std::string_view name, const tensor_type& type);
  /// Whether input `i` is an argument whose address is null.
  bool is_nowhere(const graph& g, int i) const;
  /// Refuses a graph without dead nodes that reads such an argument.
  void check_addresses(const graph& g) const;
  tensor_ref number(const tensor_type& type, double value);
  void finish(const graph& g);

  input_memory memory_;
  compute_function compute_;
  const graph* graph_{};  ///< in eager mode, while the cell runs
  value_store values_;
  std::vector<aligned_buffer> numbers_;
  std::vector<tensor_ref> updated_;
  std::vector<tensor_ref> results_;
};

}  // namespace cella

#if CELLA_HAS_BODIES
#include <cella/train/runtime_path_body.hpp>
#endif
