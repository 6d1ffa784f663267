// What runs an operation that no group has taken.
#pragma once

#include <cella/ops/random.hpp>
#include <cella/ops/softmax.hpp>
#include <cella/passes/plan.hpp>

namespace cella {

/// The step that computes node `x` alone, in a program of element type `element`.
constexpr step_kind kind_alone(const node& x, dtype element) {
  if (x.op->kind == op_kind::control) return step_kind::control;
  if (is<transpose_op>(x) && size_of(x.type.element) > 0) return step_kind::permute;
  const bool vectors = element == dtype::f32 || element == dtype::f64;
  if ((is<softmax_op>(x) || is<log_softmax_op>(x)) && x.type.element == element && vectors)
    return step_kind::softmax;
  if (is<random_uniform_op>(x) && x.type.element == element && vectors)
    return step_kind::random_uniform;
  return step_kind::generic;
}

}  // namespace cella
