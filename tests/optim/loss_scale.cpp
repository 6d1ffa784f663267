// Scaled losses against a scaler by hand, as torch.amp.GradScaler has it.
#include <doctest/doctest.h>

#include <cella/optim/clip.hpp>
#include <cella/optim/loss_scale.hpp>
#include <string>

#include "linear_case.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr optim::sgd momentum{.momentum = 0.5};
constexpr double start = 0x1p30;
/// Doubles hold it times 2^27, not times 2^28.
constexpr double huge = 1e300;

}  // namespace

TEST_CASE("a scale that is a power of two changes nothing but steps that overflow") {
  const std::vector<pair_of_tensors> gradients{
      {{3, -0.2, 0.5}, {0.1, -4, 0, 1}},
      {{1, HUGE_VAL, 0}, {0, 0, 1, 1}},
      {{0, 0, 1}, {0, 0, std::nan(""), 1}},
      {{1, 2, 3}, {4, 5, 6, 7}},
  };
  const auto scaled = trained<optim::loss_scale(1024, momentum)>(gradients, 0.1);
  const auto plain = trained<momentum>({gradients[0], gradients[3]}, 0.1);
  CHECK(distance(scaled[0], plain[0]) == 0);
  CHECK(distance(scaled[1], plain[0]) == 0);
  CHECK(distance(scaled[2], plain[0]) == 0);
  // The momentum is that of the first step.
  CHECK(distance(scaled[3], plain[1]) == 0);
}

TEST_CASE("a dynamic scale halves when it overflows and doubles when it has not for a while") {
  const pair_of_tensors large{{huge, 0, 0}, {0, 0, 0, 0}};
  constexpr auto rule = optim::dynamic_loss_scale(optim::sgd{}, {start, 3});
  const auto w = trained<rule>(std::vector(14, large), 1);
  double scale = start, value = 1;
  int without = 0, kept = 0;
  for (const pair_of_tensors& after : w) {
    if (huge * scale < HUGE_VAL) {
      value -= huge;
      ++kept;
      if (++without == 3) scale *= 2, without = 0;
    } else {
      scale /= 2;
      without = 0;
    }
    CHECK(after.a[0] == doctest::Approx(value));
    CHECK(after.a[1] == 1);
  }
  CHECK(kept > 5);
  CHECK(kept < 12);
}

TEST_CASE("what is no scale is a fault") {
  CHECK(std::string(fault_of_step(linear_step<optim::loss_scale(0, momentum)>{}).view())
            .ends_with("optim::loss_scale: the scale is 0; it must be above 0, and finite"));
  CHECK(std::string(fault_of_step(
                        linear_step<optim::dynamic_loss_scale(momentum, {.growth_interval = 0})>{})
                        .view())
            .ends_with("growth_interval is 0; it must be at least 1"));
  CHECK(
      fault_of_step(linear_step<optim::loss_scale(8, optim::clip_by_norm(1, momentum))>{}).empty());
}
