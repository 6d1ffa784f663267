// Averages of the weights over the steps of training.
#pragma once

#include <cella/ops/comparison.hpp>
#include <cella/optim/update.hpp>

namespace cella::optim {

namespace detail {

/// Updates by the rule, then the slot `average` of each weight that it updated to
/// `next(context, average, weight)`.
template <optimizer Rule, class Next>
constexpr void update_with_averages(const Rule& rule, const gradient_list& g, Next next) {
  builder& b = *g.b;
  const std::size_t first = b.bodies.updates.size();
  optim::update(rule, g);
  const std::size_t last = b.bodies.updates.size();
  for (std::size_t k = first; k < last && !b.failed(); ++k) {
    const input_update u = b.bodies.updates[k];
    if (b.g.inputs[std::size_t(u.input)].role != input_role::parameter) continue;
    context c(b, u.input, g.pace);
    const var average = c.slot("average");
    c.update_slot(c.last_slot(), next(c, average, var{&b, u.value}));
  }
}

}  // namespace detail

/// What `averaged` makes.
template <optimizer Rule>
struct averaged_rule : wrapped<Rule> {
  double decay{};

  constexpr void check(builder& b) const {
    if (!(decay >= 0 && decay < 1))
      b.fail(text() << "optim::averaged: the decay is " << decay << "; it must lie in [0, 1)");
    wrapped<Rule>::check(b);
  }
  constexpr void update(const gradient_list& g) const {
    detail::update_with_averages(this->rule, g, [this](const context& c, var average, var weight) {
      return select(c.step() > 1, average * decay + weight * (1 - decay), weight);
    });
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

/// What `equally_averaged` makes.
template <optimizer Rule>
struct equally_averaged_rule : wrapped<Rule> {
  int first_step = 1;

  constexpr void check(builder& b) const {
    if (first_step < 1) {
      b.fail(text() << "optim::equally_averaged: the first step is " << first_step
                    << "; steps count from 1");
    }
    wrapped<Rule>::check(b);
  }
  constexpr void update(const gradient_list& g) const {
    detail::update_with_averages(this->rule, g, [this](const context& c, var average, var weight) {
      const var count = c.step() - (first_step - 1);  // of weights in the mean, this one among them
      return select(count > 0, average + (weight - average) / maximum(count, 1), average);
    });
  }
};
/// Keeps the mean of the weights behind each step from `first_step` on in the slot `average`:
/// stochastic weight averaging, to be used and read like `averaged`.  Izmailov et al. 2018
template <optimizer Rule>
constexpr equally_averaged_rule<Rule> equally_averaged(int first_step, Rule rule) {
  return {{rule}, first_step};
}

}  // namespace cella::optim
