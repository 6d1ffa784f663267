// Options of optimizers that cannot be meant are refused when the rule is traced.
#include <doctest/doctest.h>

#include <cella/optim/optimizers.hpp>
#include <string>

using namespace cella;

namespace {

/// The fault of one application of a rule; empty if there is none.
template <class Rule>
constexpr text fault_of(const Rule& rule) {
  builder b;
  const tensor_type t{dtype::f32, {3}};
  b.input(t, input_role::parameter, "w");
  const var g{&b, b.input(t, input_role::argument, "g")};
  optim::context c(b, 0);
  rule(c, g);
  return b.fault();
}

using namespace optim;
static_assert(fault_of(sgd{.momentum = -0.9}).view() ==
              "optim::sgd: momentum is -0.9; it must lie in [0, 1)");
static_assert(fault_of(sgd{.momentum = 0.9, .dampening = 0.1, .weight_decay = 1e-4}).empty());
static_assert(fault_of(sgd{.nesterov = true}).view() ==
              "optim::sgd: nesterov does nothing without momentum; give momentum, or leave it out");
static_assert(fault_of(adam{}).empty() && fault_of(adamw{}).empty() && fault_of(adamax{}).empty());
static_assert(fault_of(adam{.beta2 = 1}).view() ==
              "optim::adam: beta2 is 1; it must lie in [0, 1)");
static_assert(fault_of(adam{.epsilon = -1e-8}).view() ==
              "optim::adam: epsilon is -1e-8; it must be at least 0, and finite");
static_assert(fault_of(adamw{.beta1 = 1}).view() ==
              "optim::adamw: beta1 is 1; it must lie in [0, 1)");
static_assert(fault_of(rmsprop{.decay = 1.5}).view() ==
              "optim::rmsprop: decay is 1.5; it must lie in [0, 1)");
static_assert(!fault_of(adagrad{.weight_decay = -1}).empty());
static_assert(!fault_of(adadelta{.decay = -0.1}).empty());
static_assert(!fault_of(radam{.beta1 = 2}).empty() &&
              !fault_of(nadam{.momentum_decay = -1}).empty());

}  // namespace

TEST_CASE("an option that is not a number is refused, too") {
  const sgd rule{.weight_decay = std::numeric_limits<double>::quiet_NaN()};
  CHECK_THROWS_WITH_AS(fault_of(rule),
                       "optim::sgd: weight_decay is nan; it must be at least 0, and finite",
                       model_error);
}
