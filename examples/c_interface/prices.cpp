// A shared library with an interface in C: prices.h. Inside are two compiled programs on one set of
// parameters, and nothing of Cella or C++ is seen from outside.
#include "prices.h"

#include <cella/models/mlp.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/train/step.hpp>

using namespace cella;

using net = models::mlp<PRICES_FEATURES, 16, 1>;
using step_cell = training_step<net, squared_error_loss, fixed<optim::adam{}>>;
using many_features = tensor<dtype::f32, PRICES_BATCH, PRICES_FEATURES>;
using many_prices = tensor<dtype::f32, PRICES_BATCH, 1>;
using learning = program<step_cell, true, dtype::f32, many_features, many_prices>;
using asking = inference_program<net, many_features>;

struct prices {
  explicit prices(unsigned seed) : parameters(cell.net, seed) {}

  step_cell cell;
  parameter_store parameters;
  executable<learning> learn{parameters};
  executable<asking> ask{parameters};
  int steps = 0;
};

namespace {
/// Whether f went through.
template <class F>
int status(F f) noexcept {
  try {
    f();
    return 0;
  } catch (...) { return 1; }
}
}  // namespace

#define EXPORTED __attribute__((visibility("default")))

EXPORTED prices* prices_new(unsigned seed) {
  prices* made = nullptr;
  status([&] { made = new prices(seed); });
  return made;
}
EXPORTED void prices_delete(prices* p) { delete p; }

EXPORTED int prices_learn(prices* p, const float* features, const float* wanted,
                          double learning_rate, float* loss) {
  return status([&] {
    p->learn.scalar(learning::scalar("learning_rate"), learning_rate);
    p->learn.scalar(learning::scalar("step"), ++p->steps);
    p->learn.call_unchecked(features, wanted);
    *loss = p->learn.result<0>()[0];
  });
}
EXPORTED int prices_ask(prices* p, const float* features, float* found) {
  return status([&] {
    p->ask.call_unchecked(features);
    std::ranges::copy(p->ask.result(), found);
  });
}
