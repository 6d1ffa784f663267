// Runs graphs that exist at run time only: eager mode, node by node as they are appended, and whole
// graphs (loaded from a file, or traced for a batch size that no program was compiled for).
#pragma once

#include <cella/backend/buffer.hpp>
#include <cella/ops/array.hpp>
#include <cella/ops/compute.hpp>
#include <map>
#include <vector>

namespace cella {

/// Computes one operation; a back end may hand over its own in place of `compute`.
using compute_function = void (*)(const op_info&, const attributes&, std::span<const tensor_ref>,
                                  std::span<const tensor_ref>);

/// The values of a graph's nodes. A node's value is owned here, or bound to memory of the caller.
class value_store {
 public:
  /// Node `n` lives in the caller's memory.
  void bind(node_id n, tensor_ref value) { at(n).assign(1, value); }

  const tensor_ref& value(node_id n, int result = 0) const {
    return values_[std::size_t(n)][std::size_t(result)];
  }
  bool has(node_id n) const {
    return std::size_t(n) < values_.size() && !values_[std::size_t(n)].empty();
  }

  /// Computes node `n` of `g`, whose operands are computed.
  void evaluate(const graph& g, node_id n, compute_function run) {
    const node& x = g.nodes[std::size_t(n)];
    if (x.op == &input_info_of) return;
    if (x.op == &get_info_of) {
      const tensor_ref v = value(g.operand(n, 0), x.attributes.as<get_attributes>().result);
      at(n).assign(1, v);
      return;
    }
    std::vector<tensor_ref> in;
    for (node_id o : g.operands(n)) in.push_back(value(o));
    std::vector<tensor_ref> out;
    for (int k = 0; k < (x.result_count ? x.result_count : 1); ++k) {
      const tensor_type t = x.result_count ? g.result_type(n, k) : x.type;
      out.push_back({allocate(std::size_t(t.bytes())), t});
    }
    run(*x.op, x.attributes, in, out);
    at(n) = std::move(out);
  }

 private:
  std::vector<tensor_ref>& at(node_id n) {
    if (values_.size() <= std::size_t(n)) values_.resize(std::size_t(n) + 1);
    return values_[std::size_t(n)];
  }
  std::byte* allocate(std::size_t bytes) {
    owned_.emplace_back(bytes ? bytes : 1);
    return owned_.back().data();
  }

  std::vector<std::vector<tensor_ref>> values_;
  std::vector<aligned_buffer> owned_;
};

/// Eager mode: attach it to a builder, and each node is computed when it is appended.
class eager_evaluator final : public builder::evaluator {
 public:
  explicit eager_evaluator(compute_function run = &compute) : run_(run) {}

  value_store values;

  void evaluate(builder& b, node_id n) override { values.evaluate(b.g, n, run_); }
  double read(node_id n, std::int64_t i) const override { return read_element(values.value(n), i); }

 private:
  compute_function run_;
};

/// Runs the main region of `g` on inputs bound in `values`; afterwards every node has a value
/// there.
inline void interpret(const graph& g, value_store& values, compute_function run = &compute) {
  for (node_id n : g.regions[0].nodes) values.evaluate(g, n, run);
}

}  // namespace cella
