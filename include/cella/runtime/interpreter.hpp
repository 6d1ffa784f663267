// Runs graphs that exist at run time only: eager mode, node by node as they are appended, and whole
// graphs (loaded from a file, or traced for a batch size that no program was compiled for).
#pragma once

#include <cella/backend/host/buffer.hpp>
#include <cella/backend/host/finite.hpp>
#include <cella/graph/list.hpp>
#include <cella/ops/compute.hpp>
#include <map>
#include <memory>

namespace cella {

/// Computes one operation; a back end may hand over its own in place of `compute`.
using compute_function = void (*)(const op_info&, const attributes&, span<const tensor_ref>,
                                  span<const tensor_ref>);

namespace detail {

/// A value and what keeps its memory alive: nothing, if the memory is the caller's.
struct held_tensor {
  std::shared_ptr<aligned_buffer> owner;
  tensor_ref value;
};
using held_list = list<held_tensor>;

/// What records hold, by number. An element of type `record` is a number in an i64; 0 holds nothing
/// and reads as zeros. So everything that moves elements moves records, too.
class record_pool {
 public:
  std::int64_t add(held_list fields);
  const held_list& operator[](std::int64_t number) const {
    return records_[std::size_t(number - 1)];
  }

 private:
  list<held_list> records_;
};

/// The constant tensors of a graph in memory, each since it was first asked for. (The graph's own
/// words move while it grows.)
class constant_memory {
 public:
  const held_tensor& of(const graph& g, node_id n);

 private:
  std::map<std::int32_t, held_tensor> tensors_;
};

}  // namespace detail

/// The values of a graph's nodes. A node's value is owned here, or bound to memory of the caller.
class value_store {
 public:
  value_store();
  value_store(value_store&&) noexcept;
  value_store& operator=(value_store&&) noexcept;
  ~value_store();

  /// Node `n` lives in the caller's memory.
  void bind(node_id n, tensor_ref value);

  const tensor_ref& value(node_id n, int result = 0) const {
    return values_[std::size_t(n)][std::size_t(result)].value;
  }
  bool has(node_id n) const {
    return std::size_t(n) < values_.size() && !values_[std::size_t(n)].empty();
  }

  /// Computes node `n` of `g`, whose operands are computed.
  void evaluate(const graph& g, node_id n, compute_function run);

 private:
  detail::held_list& at(node_id n);

  list<detail::held_list> values_;
  detail::record_pool records_;
  detail::constant_memory constants_;
  bool stop_at_nan_ = stops_at_nan();
};

/// Eager mode: attach it to a builder, and each node is computed when it is appended.
class eager_evaluator final : public builder::evaluator {
 public:
  explicit eager_evaluator(compute_function run = &compute) : run_(run) {}
  ~eager_evaluator();

  value_store values;

  void evaluate(const graph& g, node_id n) override;
  double read(node_id n, std::int64_t i) const override;

 private:
  compute_function run_;
};

/// Runs the main region of `g` on inputs bound in `values`; afterwards every node has a value
/// there.
void interpret(const graph& g, value_store& values, compute_function run = &compute);

}  // namespace cella

#if CELLA_HAS_BODIES
#include <cella/runtime/interpreter_body.hpp>
#endif
