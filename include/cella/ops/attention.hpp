// Attention as a composition; back ends may recognize it.
#pragma once

#include <cella/ops/diagonal.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/softmax.hpp>
#include <cmath>
#include <limits>

namespace cella {

namespace detail {
/// Square root that also runs in constant evaluation (Newton's iteration). Precondition: x > 0.
constexpr double square_root(double x) {
  double y = x > 1 ? x : 1;
  for (double before = 0; y != before && (before == 0 || y < before);) {
    before = y;
    y = 0.5 * (y + x / y);
  }
  return y;
}

constexpr var attention_scores(operand query, operand key) {
  const var q = query.in(*query.owner());
  const int width = q.rank() ? q.extent(-1) : 1;
  return matmul(query, key, false, true) * (1 / square_root(width < 1 ? 1 : width));
}
}  // namespace detail

/// softmax(q k^T / sqrt(width)) v: queries [...,T,D], keys [...,S,D], values [...,S,E] ->
/// [...,T,E]. `causal`: query t sees keys 0 to t only. Vaswani et al. 2017
constexpr var scaled_dot_product_attention(operand query, operand key, operand value,
                                           bool causal = false) {
  var scores = detail::attention_scores(query, key);
  if (causal) {
    scores = select(detail::column_less_row("scaled_dot_product_attention", scores) <= 0, scores,
                    -std::numeric_limits<double>::infinity());
  }
  return matmul(softmax({scores, query.at()}), value);
}
/// The same where `mask` (bool, broadcasts to [...,T,S]) tells which keys each query sees. A query
/// that sees none yields NaN.
constexpr var masked_attention(operand query, operand key, operand value, operand mask) {
  const var scores = detail::attention_scores(query, key);
  const var seen = select(mask.in(*query.owner()), {scores, query.at()},
                          -std::numeric_limits<double>::infinity());
  return matmul(softmax({seen, query.at()}), value);
}

}  // namespace cella
