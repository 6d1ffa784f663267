// Learning rates that rise and fall.
#pragma once

#include <cella/optim/schedules.hpp>

namespace cella::optim {

/// Half a cosine from first / rise to `most` over the share `rising` of the length, then half a
/// cosine down to first / fall below that, where it stays: PyTorch's OneCycleLR. The first rate is
/// most / rise, the last most / (rise fall).  Smith and Topin 2018
struct one_cycle {
  double most{};
  period length = epochs(1);
  double rising = 0.3;
  double rise = 25;
  double fall = 1e4;

  double operator()(std::int64_t step, std::int64_t steps_per_epoch) const {
    if (!(rising >= 0 && rising <= 1)) {
      throw error("learning rate: the share of one_cycle that rises is " + std::to_string(rising) +
                  "; it has to lie between 0 and 1");
    }
    const double all = length.steps(steps_per_epoch), top = rising * all - 1, end = all - 1;
    const double first = most / rise, last = first / fall;
    const auto between = [](double from, double to, double t) {
      return to + (from - to) * (1 + std::cos(std::numbers::pi * t)) / 2;
    };
    const double at = std::min(double(step), end);
    if (at <= top) return top > 0 ? between(first, most, at / top) : most;
    return end > top ? between(most, last, (at - top) / (end - top)) : last;
  }
};

/// Half cosine waves from `first` to `last`, the first over `length`, each `growth` times as long
/// as the one before; each begins with the first rate.  Loshchilov and Hutter 2017 (SGDR)
struct cosine_restarts {
  double first{};
  named_ends by_name{};
  double last = 0;
  period length = epochs(10);
  double growth = 1;

  double operator()(std::int64_t step, std::int64_t steps_per_epoch) const {
    double one = length.steps(steps_per_epoch), at = double(step);
    if (!(one > 0)) detail::refuse_period(one, false, "what is repeated has to be longer than 0");
    if (!(growth >= 1)) {
      throw error("learning rate: cosine_restarts has a growth of " + std::to_string(growth) +
                  "; it has to be at least 1");
    }
    if (growth == 1) {
      at = std::fmod(at, one);
    } else {
      for (; at >= one; one *= growth) at -= one;
    }
    return last + (first - last) * (1 + std::cos(std::numbers::pi * at / one)) / 2;
  }
};

/// In straight lines from `least` to `most` over `up`, and back over `down`, again and again; the
/// height is multiplied by `shrink` from one cycle to the next.  Smith 2017
struct triangular {
  double least{};
  double most{};
  period up = epochs(4);
  period down = epochs(4);
  double shrink = 1;

  double operator()(std::int64_t step, std::int64_t steps_per_epoch) const {
    const double rise = up.steps(steps_per_epoch), fall = down.steps(steps_per_epoch);
    if (!(rise + fall > 0))
      detail::refuse_period(rise + fall, false, "what is repeated has to be longer than 0");
    const double cycle = std::floor(double(step) / (rise + fall));
    const double at = double(step) - cycle * (rise + fall);
    const double height = at < rise ? at / rise : 1 - (at - rise) / fall;
    return least + (most - least) * height * std::pow(shrink, cycle);
  }
};

}  // namespace cella::optim
