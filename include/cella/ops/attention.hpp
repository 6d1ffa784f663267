// Attention as a composition; back ends may recognize it.
#pragma once

#include <cella/graph/once.hpp>
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

/// Scores of keys that a query does not see become minus infinity.
CELLA_ONCE constexpr var causal_scores(std::string_view op, var scores) {
  return select(column_less_row(op, scores) <= 0, scores, -std::numeric_limits<double>::infinity());
}

/// Axes [lead..., second, third, fourth] of a factor list, `lead` factors counted from 0.
constexpr iteration_space::axes axes_behind(int lead, int second, int third, int fourth) {
  iteration_space::axes a = iteration_space::no_axes;
  for (int d = 0; d < lead; ++d) a[std::size_t(d)] = std::int8_t(d);
  a[std::size_t(lead)] = std::int8_t(second);
  a[std::size_t(lead) + 1] = std::int8_t(third);
  a[std::size_t(lead) + 2] = std::int8_t(fourth);
  return a;
}
}  // namespace detail

/// softmax(q k^T / sqrt(width)) v: queries [...,T,D], keys [...,S,D], values [...,S,E] ->
/// [...,T,E]. `causal`: query t sees keys 0 to t only. Vaswani et al. 2017
CELLA_ONCE constexpr var scaled_dot_product_attention(operand query, operand key, operand value,
                                                      bool causal = false) {
  var scores = detail::attention_scores(query, key);
  if (causal) scores = detail::causal_scores("scaled_dot_product_attention", scores);
  return matmul(softmax({scores, query.at()}), value);
}
/// The same where `mask` (bool, broadcasts to [...,T,S]) tells which keys each query sees. A query
/// that sees none yields NaN.
CELLA_ONCE constexpr var masked_attention(operand query, operand key, operand value, operand mask) {
  const var scores = detail::attention_scores(query, key);
  const var seen = select(mask.in(*query.owner()), {scores, query.at()},
                          -std::numeric_limits<double>::infinity());
  return matmul(softmax({seen, query.at()}), value);
}

/// Attention of `heads` heads that lie side by side in the last axis: queries [...,T,H*D], keys
/// [...,S,H*D], values [...,S,H*E] -> [...,T,H*E]. Nothing is transposed in memory: the products
/// walk the heads where they lie. Vaswani et al. 2017, section 3.2.2
CELLA_ONCE constexpr var multi_head_attention(operand query, operand key, operand value, int heads,
                                              bool causal = false) {
  builder& b = owner_of(query, key);
  const var q = query.in(b);
  const var k = key.in(b);
  const var v = value.in(b);
  const int rank = q.rank();
  bool fits = heads > 0 && rank >= 2 && rank < max_rank && k.rank() == rank && v.rank() == rank &&
              q.element() == k.element() && q.element() == v.element();
  for (int d = 0; fits && d < rank - 2; ++d)
    fits = q.extent(d) == k.extent(d) && q.extent(d) == v.extent(d);
  fits = fits && k.extent(-2) == v.extent(-2) && q.extent(-1) == k.extent(-1) &&
         q.extent(-1) % heads == 0 && v.extent(-1) % heads == 0;
  if (!fits) {
    b.fail(text() << query.at() << ": multi_head_attention: queries [...,T,W], keys [...,S,W] and "
                  << "values [...,S,V] whose widths " << heads << " heads divide are needed: "
                  << b.describe(q.id) << " is " << q.type() << ", " << b.describe(k.id) << " is "
                  << k.type() << ", " << b.describe(v.id) << " is " << v.type());
    return q;
  }
  auto cut = [&](var x, std::source_location at) {
    shape s = x.shape();
    s[rank - 1] /= heads;
    s.insert(rank - 1, heads);
    return reshape({x, at}, s);
  };
  // Factors behind the leading axes: head, query, key, and the width that is summed or kept.
  const int lead = rank - 2;
  const int h = lead, t = lead + 1, s = lead + 2, w = lead + 3;
  const auto by_query = detail::axes_behind(lead, t, h, w);
  const auto by_key = detail::axes_behind(lead, s, h, w);
  const auto pairs = detail::axes_behind(lead, h, t, s);
  const double scale = 1 / detail::square_root(q.extent(-1) / heads);
  var scores = emit<matmul_op>(matmul_op::options{by_query, by_key, pairs}, query.at(),
                               cut(q, query.at()), cut(k, key.at())) *
               operand(scale, query.at());
  if (causal) scores = detail::causal_scores("multi_head_attention", scores);
  const var seen = emit<matmul_op>(matmul_op::options{pairs, by_key, by_query}, query.at(),
                                   softmax({scores, query.at()}), cut(v, value.at()));
  shape result = q.shape();
  result[rank - 1] = v.extent(-1);
  return reshape(seen, result);
}

}  // namespace cella
