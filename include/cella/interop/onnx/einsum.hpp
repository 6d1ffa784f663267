// Sums of products by an equation of letters.
#pragma once

#include <cella/interop/onnx/node.hpp>
#include <cella/ops/einsum.hpp>

namespace cella::interop {

inline list<var> einsum_rule(onnx_node& n) {
  const list<var> in = n.inputs();
  if (in.empty()) n.refuse("has no operands");
  return {einsum(n.string("equation", ""), span<const var>(in.data(), in.size()))};
}

inline constexpr named_onnx_rule einsum_rules[] = {
    {"Einsum", einsum_rule},
};

}  // namespace cella::interop
