// Averages of the weights over the steps of training.
#pragma once

#include <cella/ops/comparison.hpp>
#include <cella/optim/update.hpp>

namespace cella::optim {

template <optimizer Rule>
struct averaged_rule : wrapped<Rule> {
  double decay{};

  constexpr void check(builder& b) const {
    if (!(decay >= 0 && decay < 1))
      b.fail(text() << "optim::averaged: the decay is " << decay << "; it must lie in [0, 1)");
    wrapped<Rule>::check(b);
  }
  constexpr void update(const gradient_list& g) const {
    builder& b = *g.b;
    const std::size_t first = b.bodies.updates.size();
    optim::update(this->rule, g);
    const std::size_t last = b.bodies.updates.size();
    for (std::size_t k = first; k < last && !b.failed(); ++k) {
      const input_update u = b.bodies.updates[k];
      if (b.g.inputs[std::size_t(u.input)].role != input_role::parameter) continue;
      context c(b, u.input, g.pace);
      const var weight{&b, u.value};
      const var next = c.slot("average") * decay + weight * (1 - decay);
      c.update_slot(c.last_slot(), select(c.step() > 1, next, weight));
    }
  }
};
/// Keeps an exponential moving average of each weight that the rule updates, in the slot `average`:
/// average = decay average + (1 - decay) w.  It begins with the weights behind the first step, as
/// in PyTorch's AveragedModel, so that it is a mean of weights from then on, without a correction.
/// To evaluate on the averages see `model::use_averages` and `train::average_scope`.
template <optimizer Rule>
constexpr averaged_rule<Rule> averaged(double decay, Rule rule) {
  return {{rule}, decay};
}

}  // namespace cella::optim
