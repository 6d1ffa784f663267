// Cases of golden files in the form of `ops.json`.
#pragma once

#include <cella/interop/safetensors.hpp>
#include <nlohmann/json.hpp>

#include "support/golden.hpp"

namespace cella::test {

/// One case of `ops.json`. Cotangent i belongs to output i; outputs beyond the last cotangent are
/// not differentiable (indices). Without any, the operation has no gradient to check.
struct golden_case {
  std::string op;
  std::string name;  // "case" in the file
  nlohmann::json attrs;
  std::vector<golden_tensor> inputs, outputs, cotangents;
  std::vector<std::optional<golden_tensor>> input_gradients;  // none: no gradient flows there

  /// `matmul.batched`, for messages: `INFO(c.label())`.
  std::string label() const { return op + "." + name; }
};

/// The elements of a tensor of a file as doubles.
golden_tensor widen(const interop::named_tensor& t);

/// Case `i` of a file, with its tensors.
golden_case load_case(const golden& file, std::size_t i);

}  // namespace cella::test
