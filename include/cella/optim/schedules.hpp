// Learning-rate schedules: functions of the step and of the steps per epoch.
//
//   warmup(steps(500), cosine{.first = 0.1, .length = epochs(20)})
#pragma once

#include <cella/graph/error.hpp>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <type_traits>
#include <utility>

namespace cella::optim {

/// Stands behind the first rate of a schedule, so that what follows is given by name: cosine{0.1,
/// 100} would end at a rate of 100.
struct named_ends {
  constexpr named_ends() = default;
  template <class T>
  requires std::is_arithmetic_v<T>
  __attribute__((unavailable(
      "name what stands behind the first rate: {.first = 0.1, .length = optim::epochs(10)}")))  //
  constexpr named_ends(T) {}
  bool operator==(const named_ends&) const = default;
};

namespace detail {
template <std::same_as<double> Amount>
[[noreturn]] void refuse_period(Amount amount, bool in_epochs, const char* wanted) {
  throw error("learning rate: the schedule has a length of " + std::to_string(amount) +
              (in_epochs ? " epochs" : " steps") + "; " + wanted);
}
}  // namespace detail

/// A length of training, in steps or in epochs: what `steps` and `epochs` make.
struct period {
  double amount{};
  bool in_epochs{};

  constexpr period() = default;
  constexpr period(double n, bool whole_epochs) : amount(n), in_epochs(whole_epochs) {}
  // Of 10 nobody could say what it counts.
  template <class T>
  requires std::is_arithmetic_v<T>
  __attribute__((unavailable("say what it counts: optim::steps(500) or optim::epochs(10)")))  //
  constexpr period(T n)
      : amount(double(n)) {}

  /// Throws `error` unless the length is 0 or more, and finite.
  constexpr double steps(std::int64_t steps_per_epoch) const {
    if (!(amount >= 0 && amount <= std::numeric_limits<double>::max()))
      detail::refuse_period(amount, in_epochs, "it has to be 0 or more, and finite");
    return in_epochs ? amount * double(steps_per_epoch) : amount;
  }
};
/// A length of `n` steps.
constexpr period steps(double n) { return {n, false}; }
/// A length of `n` epochs, however many steps one has.
constexpr period epochs(double n) { return {n, true}; }

/// Maps (step, steps per epoch) to a learning rate; steps count from 0.
template <class S>
concept learning_rate_schedule = requires(const S& s, std::int64_t n) {
  { s(n, n) } -> std::convertible_to<double>;
};

namespace detail {
/// How much of `length` has passed, 0 to 1. A length of zero has passed.
inline double passed(std::int64_t step, period length, std::int64_t steps_per_epoch) {
  const double all = length.steps(steps_per_epoch);
  return all > 0 && double(step) < all ? double(step) / all : 1;
}
inline double periods(std::int64_t step, period every, std::int64_t steps_per_epoch) {
  const double one = every.steps(steps_per_epoch);
  if (one > 0) return double(step) / one;
  refuse_period(every.amount, every.in_epochs, "what is repeated has to be longer than 0");
}
}  // namespace detail

/// Always the same.
struct constant {
  double rate{};
  double operator()(std::int64_t, std::int64_t) const { return rate; }
};

/// first * factor^floor(step / every)
struct step_decay {
  double first{};
  named_ends by_name{};
  double factor = 0.1;
  period every = epochs(30);
  double operator()(std::int64_t step, std::int64_t steps_per_epoch) const {
    return first * std::pow(factor, std::floor(detail::periods(step, every, steps_per_epoch)));
  }
};

/// first * factor^(step / every)
struct exponential {
  double first{};
  double factor = 0.95;
  period every = epochs(1);
  double operator()(std::int64_t step, std::int64_t steps_per_epoch) const {
    return first * std::pow(factor, detail::periods(step, every, steps_per_epoch));
  }
};

/// Half a cosine wave from `first` to `last`, where it stays. Loshchilov and Hutter 2017
struct cosine {
  double first{};
  named_ends by_name{};
  double last = 0;
  period length = epochs(1);
  double operator()(std::int64_t step, std::int64_t steps_per_epoch) const {
    const double t = detail::passed(step, length, steps_per_epoch);
    return last + (first - last) * (1 + std::cos(std::numbers::pi * t)) / 2;
  }
};

/// last + (first - last) (1 - step / length)^power, then `last`. Power 1 is a straight line.
struct polynomial {
  double first{};
  named_ends by_name{};
  double last = 0;
  period length = epochs(1);
  double power = 1;
  double operator()(std::int64_t step, std::int64_t steps_per_epoch) const {
    const double t = detail::passed(step, length, steps_per_epoch);
    return t < 1 ? last + (first - last) * std::pow(1 - t, power) : last;
  }
};

/// Rises in equal parts to the first rate of `after`, reached in the last of its steps; then
/// `after` begins. Goyal et al. 2017
template <learning_rate_schedule S>
struct warmed {
  period length;
  S after;
  double operator()(std::int64_t step, std::int64_t steps_per_epoch) const {
    const auto n = std::int64_t(std::llround(length.steps(steps_per_epoch)));
    if (step < n) return double(after(0, steps_per_epoch)) * double(step + 1) / double(n);
    return after(step - n, steps_per_epoch);
  }
};
/// A schedule, or a constant rate, that begins with a rise of this length: see `warmed`.
template <learning_rate_schedule S>
constexpr warmed<S> warmup(period length, S after) {
  return {length, std::move(after)};
}
inline warmed<constant> warmup(period length, double rate) { return {length, {rate}}; }

/// Any schedule, or a number that stays: what `fit` takes.
class schedule {
 public:
  schedule(double rate) : rate_(constant{rate}) {}
  template <learning_rate_schedule S>
  requires(!std::same_as<S, schedule>) schedule(S rate) : rate_(std::move(rate)) {}

  // A template: 0 is a rate, and no pointer.
  template <std::same_as<const char*> Text>
  __attribute__((unavailable("a schedule is an object, such as optim::cosine{.first = 0.1}")))  //
  schedule(Text)
      : schedule(0.0) {}
  template <class F>
  requires(std::is_class_v<F> && !learning_rate_schedule<F> && !std::same_as<F, schedule> &&
           !std::is_convertible_v<F, double>)  //
      __attribute__((unavailable(
          "a schedule is a function of (std::int64_t step, std::int64_t steps_per_epoch) that "
          "returns the rate; see optim/schedules.hpp")))  //
      schedule(F)
      : schedule(0.0) {}

  /// Throws `error` when the rate is negative or no number.
  double operator()(std::int64_t step, std::int64_t steps_per_epoch) const {
    const double rate = rate_(step, steps_per_epoch);
    if (rate >= 0 && std::isfinite(rate)) return rate;
    throw error("learning rate: the schedule gives " + std::to_string(rate) + " in step " +
                std::to_string(step) + "; it has to be finite and not negative");
  }

 private:
  std::function<double(std::int64_t, std::int64_t)> rate_;
};

}  // namespace cella::optim
