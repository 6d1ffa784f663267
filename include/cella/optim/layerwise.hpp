// Rules whose rate follows the norms of each parameter, for large batches.
#pragma once

#include <cella/ops/reduction.hpp>
#include <cella/optim/optimizers.hpp>

namespace cella::optim {

namespace detail {

/// The norm of a tensor as a number of the step's type.
constexpr var norm_of(var x) {
  return sqrt(sum(square(is_storage_only(x.element()) ? cast(x, dtype::f32) : x)));
}
/// weight / other where both are positive, else 1.
constexpr var trust_ratio(var weight, var other) {
  const var both = logical_and(weight > 0, other > 0);
  return select(both, weight / select(both, other, ones_like(other)), ones_like(weight));
}

}  // namespace detail

/// The step u of Adam, plus weight_decay w, as long as the weights are: w -= rate |w| / |u| u.
/// You et al. 2020 (LAMB)
struct lamb {
  named_options by_name{};
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 0.01;

  constexpr void operator()(context& c, var g) const {
    if (!detail::moments_fit(c, "lamb", *this)) return;
    const var w = c.parameter();
    const var m = detail::decayed_slot(c, "lamb_m", beta1, g * (1 - beta1));
    const var v = detail::decayed_slot(c, "lamb_v", beta2, square(g) * (1 - beta2));
    const var first = 1 / detail::one_minus_power(c, beta1);
    const var second = rsqrt(detail::one_minus_power(c, beta2));
    var step = m * first / (sqrt(v) * second + epsilon);
    if (weight_decay != 0) step = step + w * weight_decay;
    const var ratio = detail::trust_ratio(detail::norm_of(w), detail::norm_of(step));
    c.update_parameter(w - step * (cast(ratio, c.learning_rate().element()) * c.learning_rate()));
  }
};

/// v = momentum v + rate trust |w| / (|g| + weight_decay |w| + epsilon) (g + weight_decay w), w -=
/// v; the fraction is 1 where |w| or |g| is 0.  You et al. 2017 (LARS)
struct lars {
  named_options by_name{};
  double momentum = 0.9;
  double weight_decay = 0;
  double trust = 1e-3;
  double epsilon = 0;

  constexpr void operator()(context& c, var g) const {
    if (!detail::fit(c, "lars",
                     {{"momentum", momentum, 0, 1},
                      {"weight_decay", weight_decay},
                      {"trust", trust},
                      {"epsilon", epsilon}}))
      return;
    const var w = c.parameter();
    const var of_w = detail::norm_of(w), of_g = detail::norm_of(g);
    const var both = logical_and(of_w > 0, of_g > 0);
    const var below = of_g + weight_decay * of_w + epsilon;
    const var ratio =
        select(both, trust * of_w / select(both, below, ones_like(below)), ones_like(of_w));
    const var rate = cast(ratio, c.learning_rate().element()) * c.learning_rate();
    const var step = detail::with_decay(c, g, weight_decay) * rate;
    c.update_parameter(w -
                       (momentum != 0 ? detail::decayed_slot(c, "lars_v", momentum, step) : step));
  }
};

}  // namespace cella::optim
