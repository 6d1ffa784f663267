// Scaled losses against a scaler by hand, as torch.amp.GradScaler has it.
#include <doctest/doctest.h>

#include <cella/backend/host/buffer.hpp>
#include <cella/optim/accumulate.hpp>
#include <cella/optim/averaged.hpp>
#include <cella/optim/clip.hpp>
#include <cella/optim/loss_scale.hpp>
#include <cella/train/slots.hpp>
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

namespace {

/// Steps by a rule, some of which overflow, are those of the rule without them.
template <auto Rule>
void check_steps() {
  const pair_of_tensors overflow{{1, HUGE_VAL, 0}, {0, 0, 1, 1}};
  const std::vector<pair_of_tensors> good{{{3, -0.2, 0.5}, {0.1, -4, 0, 1}},
                                          {{1, 2, 3}, {4, 5, 6, 7}},
                                          {{-1, 0.2, 3}, {4, 5, 6, 7}},
                                          {{1, 2, 3}, {4, 5, -6, 7}}};
  const auto scaled = trained<optim::loss_scale(1024, Rule)>(
      {overflow, good[0], good[1], overflow, overflow, good[2], good[3]}, 0.1);
  const auto plain = trained<Rule>(good, 0.1);
  CHECK(distance(scaled[0], {{1, 1, 1}, {-2, -2, -2, -2}}) == 0);
  CHECK(distance(scaled[1], plain[0]) < 1e-14);
  CHECK(distance(scaled[2], plain[1]) < 1e-14);
  CHECK(distance(scaled[4], plain[1]) < 1e-14);
  CHECK(distance(scaled[5], plain[2]) < 1e-14);
  CHECK(distance(scaled[6], plain[3]) < 1e-14);
}

/// The average of one of the weights behind the last step.
template <auto Rule>
double last_average(const std::vector<pair_of_tensors>& gradients) {
  using step =
      program<linear_step<Rule>, true, dtype::f64, tensor<dtype::f64, 3>, tensor<dtype::f64, 2, 2>>;
  linear_step<Rule> cell;
  parameter_store store(cell, 1, dtype::f64);
  executable<step> run(store);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    run.scalar(step::scalar("learning_rate"), 0.1);
    run.scalar(step::scalar("step"), double(i + 1));
    run(gradients[i].a, gradients[i].b);
  }
  const slot_store names(thaw(step::graph));
  const named_slot* const slot = names.find("average.a");
  REQUIRE(slot);
  return read_element({run.slots() + slot->offset, slot->type}, 0);
}

}  // namespace

TEST_CASE("a rule does not count steps that overflow, the first of all among them") {
  check_steps<optim::sgd{.momentum = 0.9, .dampening = 0.5}>();
  check_steps<optim::adam{}>();
  check_steps<optim::nadam{}>();
  check_steps<optim::accumulate<2>(optim::adam{})>();
}

TEST_CASE("an average begins with the weights behind the first step that does not overflow") {
  const pair_of_tensors overflow{{1, HUGE_VAL, 0}, {0, 0, 1, 1}}, good{{1, 1, 1}, {1, 1, 1, 1}};
  // The weight is 1, 1, 0.9, 0.8.
  const std::vector<pair_of_tensors> all{overflow, overflow, good, good};
  CHECK(last_average<optim::loss_scale(1024, optim::averaged(0.75, optim::sgd{}))>(all) ==
        doctest::Approx(0.75 * 0.9 + 0.25 * 0.8));
  CHECK(last_average<optim::loss_scale(1024, optim::equally_averaged(1, optim::sgd{}))>(all) ==
        doctest::Approx(0.85));
}

TEST_CASE("a scale that nothing overflows stays finite") {
  // The scale doubles in each step: 2^1024 has no double.
  std::vector<pair_of_tensors> gradients(1100);
  gradients.push_back({{0x1p-200, 0, 0}, {0, 0, 0, 0}});
  const auto w = trained<optim::dynamic_loss_scale(optim::sgd{}, {65536, 1})>(gradients, 0x1p199);
  CHECK(w.back().a[0] == 0.5);
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
  // In single precision it would be infinite, and all steps would overflow.
  CHECK(std::string(fault_of_step(linear_step<optim::loss_scale(1e39, momentum)>{}).view())
            .find("optim::loss_scale: the scale is 1e+39; f32 takes one from ") !=
        std::string::npos);
  CHECK(std::string(fault_of_step(
                        linear_step<optim::dynamic_loss_scale(momentum, {.growth_interval = 0})>{})
                        .view())
            .ends_with("growth_interval is 0; it must be at least 1"));
  CHECK(
      fault_of_step(linear_step<optim::loss_scale(8, optim::clip_by_norm(1, momentum))>{}).empty());
}
