// The optimizers of ai.onnx.preview.training. Operands: the rate, the number of updates, then of as
// many tensors as there are the values, the gradients and each of the states.
#pragma once

#include <cella/interop/onnx/elementwise.hpp>

namespace cella::interop {

/// Calls `update(x, gradient, states...)` for each tensor; it returns the new x and the new states.
template <class Update>
list<var> optimizer_rule(onnx_node& n, int states, Update update) {
  const int groups = states + 2, count = (n.input_count() - 2) / groups;
  if (count < 1 || n.input_count() != 2 + count * groups)
    n.refuse("has not as many gradients and states as tensors");
  std::vector<list<var>> made(std::size_t(states) + 1);
  for (int i = 0; i < count; ++i) {
    list<var> own;
    for (int g = 0; g < groups; ++g) own.push_back(n.in(2 + g * count + i));
    const list<var> next = update(own);
    for (std::size_t g = 0; g < made.size(); ++g) made[g].push_back(next[g]);
  }
  list<var> all;
  for (const list<var>& group : made)
    for (const var& x : group) all.push_back(x);
  return all;
}
inline list<var> adagrad_rule(onnx_node& n) {
  const double decay = n.number("decay_factor", 0), norm = n.number("norm_coefficient", 0),
               epsilon = n.number("epsilon", 1e-6);
  const var rate = reshape(n.in(0), shape{}), step = reshape(n.in(1), shape{});
  const var r = rate / (1 + cast(step, rate.element()) * decay);
  return optimizer_rule(n, 1, [&](const list<var>& v) -> list<var> {
    const var g = v[0] * norm + v[1];
    const var h = v[2] + square(g);
    return {v[0] - r * g / (sqrt(h) + epsilon), h};
  });
}
inline list<var> adam_rule(onnx_node& n) {
  const double alpha = n.number("alpha", 0.9), beta = n.number("beta", 0.999),
               epsilon = n.number("epsilon", 1e-6), norm = n.number("norm_coefficient", 0),
               after = n.number("norm_coefficient_post", 0);
  const var rate = reshape(n.in(0), shape{}), step = cast(reshape(n.in(1), shape{}), dtype::f64);
  auto power = [&](double base) { return pow(constant(n.b(), base, {dtype::f64, {}}), step); };
  // Of the first update there is nothing to correct.
  const var corrected = cast(sqrt(1 - power(beta)) / (1 - power(alpha)), rate.element());
  const var r = select(step > 0, rate * corrected, rate);
  return optimizer_rule(n, 2, [&](const list<var>& v) -> list<var> {
    const var g = v[0] * norm + v[1];
    const var m = v[2] * alpha + g * (1 - alpha), s = v[3] * beta + square(g) * (1 - beta);
    return {(v[0] - r * m / (sqrt(s) + epsilon)) * (1 - after), m, s};
  });
}
inline list<var> momentum_rule(onnx_node& n) {
  const double alpha = n.number("alpha", 0.9), beta = n.number("beta", 1),
               norm = n.number("norm_coefficient", 0);
  const bool nesterov = n.one_of("mode", {"standard", "nesterov"}) == "nesterov";
  const var rate = reshape(n.in(0), shape{}), step = reshape(n.in(1), shape{});
  // The first gradient counts in full.
  const var weight = select(step > 0, scalar_like(rate, beta), scalar_like(rate, 1));
  return optimizer_rule(n, 1, [&](const list<var>& v) -> list<var> {
    const var g = v[0] * norm + v[1];
    const var m = v[2] * alpha + g * weight;
    return {v[0] - rate * (nesterov ? g + m * alpha : m), m};
  });
}

inline constexpr std::string_view preview_training = "ai.onnx.preview.training";
inline constexpr named_onnx_rule training_rules[] = {
    {"Adagrad", adagrad_rule, preview_training},
    {"Adam", adam_rule, preview_training},
    {"Momentum", momentum_rule, preview_training},
};

}  // namespace cella::interop
