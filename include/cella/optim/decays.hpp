// Further learning rates that fall, and schedules one after another.
#pragma once

#include <cella/optim/schedules.hpp>
#include <vector>

namespace cella::optim {

/// first * e^(-rate step / every)
struct natural_exponential {
  double first{};
  double rate{};
  period every = epochs(1);
  double operator()(std::int64_t step, std::int64_t steps_per_epoch) const {
    return first * std::exp(-rate * detail::periods(step, every, steps_per_epoch));
  }
};

/// first / (1 + rate step / every)
struct inverse_time {
  double first{};
  double rate{};
  period every = epochs(1);
  double operator()(std::int64_t step, std::int64_t steps_per_epoch) const {
    return first / (1 + rate * detail::periods(step, every, steps_per_epoch));
  }
};

/// Rises in a straight line to `most` over `rise`, then falls with the root of the step.
/// Vaswani et al. 2017, section 5.3
struct inverse_root {
  double most{};
  period rise = steps(4000);
  double operator()(std::int64_t step, std::int64_t steps_per_epoch) const {
    const double top = std::max(rise.steps(steps_per_epoch), 1.0), now = double(step) + 1;
    return most * std::min(now / top, std::sqrt(top / now));
  }
};

/// A rate for each stretch: `piecewise{{0.1, 0.01, 0.001}, {epochs(30), epochs(60)}}` is 0.1 before
/// epoch 30. There is one more rate than ends of stretches, which grow.
struct piecewise {
  std::vector<double> rates;
  std::vector<period> ends;
  double operator()(std::int64_t step, std::int64_t steps_per_epoch) const {
    if (rates.size() != ends.size() + 1) {
      throw error("learning rate: piecewise has " + std::to_string(rates.size()) + " rates and " +
                  std::to_string(ends.size()) + " ends; give one more rate than ends");
    }
    for (std::size_t k = 1; k < ends.size(); ++k) {
      const double before = ends[k - 1].steps(steps_per_epoch),
                   end = ends[k].steps(steps_per_epoch);
      if (end >= before) continue;
      throw error("learning rate: the ends of piecewise are " + std::to_string(before) +
                  " steps and then " + std::to_string(end) + "; they have to grow");
    }
    std::size_t k = 0;
    while (k < ends.size() && double(step) >= ends[k].steps(steps_per_epoch)) ++k;
    return rates[k];
  }
};

/// What `then` makes.
template <learning_rate_schedule First, learning_rate_schedule Second>
struct followed {
  First before;
  period length;
  Second after;
  double operator()(std::int64_t step, std::int64_t steps_per_epoch) const {
    const auto n = std::int64_t(std::llround(length.steps(steps_per_epoch)));
    return step < n ? double(before(step, steps_per_epoch)) : after(step - n, steps_per_epoch);
  }
};
/// `before` for this length, then `after` from its beginning.
template <learning_rate_schedule First, learning_rate_schedule Second>
constexpr followed<First, Second> then(First before, period length, Second after) {
  return {std::move(before), length, std::move(after)};
}

}  // namespace cella::optim
