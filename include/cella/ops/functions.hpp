// Mathematical functions: all families, and what is made of several.
#pragma once

#include <cella/ops/polar.hpp>
#include <cella/ops/rounding.hpp>

namespace cella {

/// 1 / x
constexpr var reciprocal(operand x) { return detail::binary<div_op>(1, x); }
/// x + t (y - x)
constexpr var lerp(operand x, operand y, operand t) {
  return detail::binary<add_op>(x, detail::binary<mul_op>(detail::binary<sub_op>(y, x), t));
}

}  // namespace cella
