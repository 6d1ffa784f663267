// A rule whose steps are signs.
#pragma once

#include <cella/optim/optimizers.hpp>

namespace cella::optim {

/// w -= rate (sign(beta1 m + (1 - beta1) g) + weight_decay w), then m = beta2 m + (1 - beta2) g.
/// Chen et al. 2023 (Lion)
struct lion {
  named_options by_name{};
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0;

  constexpr void operator()(context& c, var g) const {
    if (!detail::fit(
            c, "lion",
            {{"beta1", beta1, 0, 1}, {"beta2", beta2, 0, 1}, {"weight_decay", weight_decay}}))
      return;
    const var w = c.parameter();
    const var m = c.slot("lion_m");
    c.update_slot(c.last_slot(), m * beta2 + g * (1 - beta2));
    var step = sign(m * beta1 + g * (1 - beta1));
    if (weight_decay != 0) step = step + w * weight_decay;
    c.update_parameter(w - step * c.learning_rate());
  }
};

}  // namespace cella::optim
