// Rules that keep weights at zero: each step ends with what the penalty l1 |w| + l2 w^2 / 2 asks
// for.
#pragma once

#include <cella/optim/optimizers.hpp>

namespace cella::optim {

namespace detail {

/// The w that makes (w - x)^2 / 2 + rate (l1 |w| + l2 w^2 / 2) least.
constexpr var shrunk(var x, var rate, double l1, double l2) {
  if (l1 != 0) x = sign(x) * maximum(abs(x) - rate * l1, 0);
  return l2 != 0 ? x / (1 + rate * l2) : x;
}

}  // namespace detail

/// w = shrunk(w - rate g): gradient descent with the penalty l1 |w| + l2 w^2 / 2.
/// Duchi and Singer 2009 (FOBOS)
struct proximal_sgd {
  named_options by_name{};
  double l1 = 0;
  double l2 = 0;

  constexpr void operator()(context& c, var g) const {
    if (!detail::fit(c, "proximal_sgd", {{"l1", l1}, {"l2", l2}})) return;
    const var rate = c.learning_rate();
    c.update_parameter(detail::shrunk(c.parameter() - g * rate, detail::spread(rate, g), l1, l2));
  }
};

/// Adagrad with the penalty l1 |w| + l2 w^2 / 2, at each weight's own rate: rate / sqrt(initial +
/// sum of g^2).  Duchi and Singer 2009; Duchi et al. 2011
struct proximal_adagrad {
  named_options by_name{};
  double initial = 0.1;  ///< what the sums of squares begin with
  double l1 = 0;
  double l2 = 0;

  constexpr void operator()(context& c, var g) const {
    if (!detail::fit(c, "proximal_adagrad", {{"initial", initial}, {"l1", l1}, {"l2", l2}})) return;
    const var sum = detail::decayed_slot(c, "proximal_sum", 1, square(g));
    const var own = detail::spread(c.learning_rate(), g) * rsqrt(sum + initial);
    c.update_parameter(detail::shrunk(c.parameter() - own * g, own, l1, l2));
  }
};

/// Follows the regularized leader: weights are a function of the sum of all gradients, and exactly
/// zero where that is at most l1.  McMahan et al. 2013
struct ftrl {
  named_options by_name{};
  double initial = 0.1;  ///< what the sums of squares begin with
  double power = -0.5;   ///< of the sums in the rates
  double l1 = 0;
  double l2 = 0;

  constexpr void operator()(context& c, var g) const {
    if (!detail::fit(c, "ftrl", {{"initial", initial}, {"power", -power}, {"l1", l1}, {"l2", l2}}))
      return;
    const var rate = detail::spread(c.learning_rate(), g);
    const var before = c.slot("ftrl_sum");
    const var after = before + square(g);
    c.update_slot(c.last_slot(), after);
    const auto root = [this](var sum) {
      return power == -0.5 ? sqrt(sum + initial) : pow(sum + initial, -power);
    };
    const var linear = c.slot("ftrl_linear");
    const std::int32_t slot = c.last_slot();
    const var next = linear + g - (root(after) - root(before)) / rate * c.parameter();
    c.update_slot(slot, next);
    // clamp(z, -l1, l1) - z is -sign(z) (|z| - l1) beyond l1, and 0 within.
    c.update_parameter((clamp(next, -l1, l1) - next) / (root(after) / rate + 2 * l2));
  }
};

}  // namespace cella::optim
