// Rules against optax, PyTorch and the formulas of papers (tests/golden/rules.py): eagerly, as
// graphs traced at run time, and planned on kernels.
#include <doctest/doctest.h>

#include <cella/ops/reduction.hpp>
#include <cella/optim/apply.hpp>
#include <cella/optim/layerwise.hpp>
#include <cella/optim/lazy.hpp>
#include <cella/optim/lbfgs.hpp>
#include <cella/optim/lion.hpp>
#include <cella/optim/muon.hpp>
#include <cella/optim/parts.hpp>
#include <cella/optim/proximal.hpp>
#include <cella/train/runtime_path.hpp>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "support/golden.hpp"
#include "support/harness.hpp"
#include "support/traced.hpp"

using namespace cella;
using namespace cella::test;
using nlohmann::json;

namespace {

/// The gradients of these weights are what the step is given.
struct weights {
  parameter<3, 4> p0{};
  parameter<5, 2> p1{};
  parameter<2, 2, 3, 1> p2{};
};
struct given_gradients {
  using cell = weights;
  static std::array<tensor_type, 3> types(dtype t) {
    return {{{t, {3, 4}}, {t, {5, 2}}, {t, {2, 2, 3, 1}}}};
  }
  static constexpr var loss(const weights& w, var a, var b, var c) {
    return sum(w.p0 * a) + sum(w.p1 * b) + sum(w.p2 * c);
  }
};
/// (1 - a)^2 + 10 (b - a^2)^2 + sum of i c_i^2; the argument is not used.
struct curved_valley {
  struct cell {
    parameter<2> p0{};
    parameter<3> p1{};
  };
  static std::array<tensor_type, 1> types(dtype t) { return {{{t, {1}}}}; }
  static constexpr var loss(const cell& w, var x) {
    const var a = slice(w.p0, 0, 0, 1), b = slice(w.p0, 0, 1, 2);
    const var c = operand(w.p1).in(*x.b);
    const var factor = iota(*x.b, c.type(), 0) + 1;
    return sum(square(1 - a) + 10 * square(b - square(a))) + sum(factor * square(c));
  }
};

/// Any rule, so that a step of each is not compiled.
struct any_rule {
  std::function<void(const optim::gradient_list&)> rule;
  void update(const optim::gradient_list& g) const { rule(g); }
};
template <class Rule>
any_rule any(const Rule& rule) {
  return {[rule](const optim::gradient_list& g) { optim::update(rule, g); }};
}

template <class Problem>
struct step_cell {
  typename Problem::cell w{};
  any_rule rule{};
  auto& wrapped() { return w; }
  template <class... X>
  var operator()(X... x) const {
    const var l = Problem::loss(w, x...);
    optim::apply(rule, l);
    return l;
  }
};

enum class way { eager, traced, planned };

/// The largest difference from the case's weights over all steps; `begin` are the first weights.
template <class Problem>
double error_of(const golden& g, const std::string& name, double rate, const any_rule& rule,
                way how, dtype element, const std::vector<reals>& begin) {
  step_cell<Problem> cell{{}, rule};
  parameter_store store(cell.w, 0, element);
  const auto value = [&](std::size_t i) { return store.value(store.entries()[i]); };
  for (std::size_t i = 0; i < begin.size(); ++i) {
    for (std::size_t k = 0; k < begin[i].size(); ++k)
      write_element(value(i), std::int64_t(k), begin[i][k]);
  }
  const auto types = Problem::types(element);
  std::vector<aligned_buffer> memory;
  std::vector<tensor_ref> arguments;
  for (const tensor_type& t : types) {
    memory.emplace_back(std::size_t(t.bytes()) + 64);
    arguments.push_back({memory.back().data(), t});
  }
  step_cell<Problem> traced_cell{{}, rule};
  const graph traced = trace(traced_cell, types, {.training = true, .precision = element});
  const slot_store slots(traced);
  planned_graph planned;
  if (how == way::planned) planned = plan_at_run_time(traced, element);
  if (how == way::planned) REQUIRE(planned.program);
  double worst = 0;
  int step = 0;
  const auto at = [](const std::string& n, int s, std::size_t i) {
    return n + "." + std::to_string(s) + "." + std::to_string(i);
  };
  for (; g.contains(at(name, step, 0)); ++step) {
    for (std::size_t i = 0; i < arguments.size() && types.size() > 1; ++i) {
      const reals v = g.tensor(at("gradient", step, i)).values;
      for (std::size_t k = 0; k < v.size(); ++k) write_element(arguments[i], std::int64_t(k), v[k]);
    }
    const std::array<named_scalar, 2> scalars{{{"learning_rate", rate}, {"step", step + 1.0}}};
    runtime_path run({&store, &slots, arguments, scalars});
    if (how == way::eager)
      run.run_eagerly([&](builder& b) { trace_into(b, cell, types); },
                      {.training = true, .precision = element});
    else if (how == way::traced)
      run.run(traced);
    else
      run.run(planned.optimized, *planned.program);
    for (std::size_t i = 0; i < begin.size(); ++i) {
      const reals expected = g.tensor(at(name, step, i)).values;
      for (std::size_t k = 0; k < expected.size(); ++k) {
        const double e = std::abs(read_element(value(i), std::int64_t(k)) - expected[k]);
        worst = std::isfinite(e) ? std::max(worst, e) : HUGE_VAL;
      }
    }
  }
  CHECK(step > 0);
  return worst;
}

/// The rule with the options of a case.
optim::lion with_options(optim::lion r, const json& o) {
  r.beta1 = o.value("beta1", r.beta1);
  r.beta2 = o.value("beta2", r.beta2);
  r.weight_decay = o.value("weight_decay", r.weight_decay);
  return r;
}
optim::lamb with_options(optim::lamb r, const json& o) {
  r.weight_decay = o.value("weight_decay", r.weight_decay);
  return r;
}
optim::lars with_options(optim::lars r, const json& o) {
  r.trust = o.value("trust", r.trust);
  r.weight_decay = o.value("weight_decay", r.weight_decay);
  return r;
}
template <class R>
requires requires(R r) { r.l1; }
R with_options(R r, const json& o) {
  r.l1 = o.value("l1", r.l1);
  r.l2 = o.value("l2", r.l2);
  if constexpr (requires { r.power; }) r.power = o.value("power", r.power);
  return r;
}
optim::muon with_options(optim::muon r, const json& o) {
  r.nesterov = o.value("nesterov", r.nesterov);
  r.weight_decay = o.value("weight_decay", r.weight_decay);
  return r;
}
template <class R>
R with_options(R r, const json&) {
  return r;
}

std::set<std::string>& followed() {
  static std::set<std::string> names;
  return names;
}

template <class Problem = given_gradients, class Rule>
void follow(const golden& g, const std::string& name, const Rule& like,
            std::vector<reals> begin = {}, double exact = 1e-12, double single = 2e-6) {
  if (begin.empty()) {
    for (int i = 0; i < 3; ++i) begin.push_back(g.tensor("initial." + std::to_string(i)).values);
  }
  for (const json& c : g.json()) {
    if (c.at("optimizer") != name) continue;
    followed().insert(name);
    const any_rule rule = any(with_options(like, c.at("options")));
    for (const way how : {way::eager, way::traced, way::planned}) {
      INFO(name, " in way ", int(how));
      CHECK(error_of<Problem>(g, name, c.at("rate"), rule, how, dtype::f64, begin) < exact);
      CHECK(error_of<Problem>(g, name, c.at("rate"), rule, how, dtype::f32, begin) < single);
    }
    return;
  }
  FAIL_CHECK("the file has no case " << name);
}

/// The parameters that a rule changes by decay alone: gradients are zero.
template <class Rule>
std::vector<double> decayed(const Rule& rule) {
  step_cell<given_gradients> cell{{}, any(rule)};
  parameter_store store(cell.w, 0, dtype::f64);
  const auto types = given_gradients::types(dtype::f64);
  std::vector<aligned_buffer> memory;
  std::vector<tensor_ref> arguments;
  for (const tensor_type& t : types) {
    memory.emplace_back(std::size_t(t.bytes()));
    arguments.push_back({memory.back().data(), t});
    for (std::int64_t k = 0; k < t.size(); ++k) write_element(arguments.back(), k, 0);
  }
  const graph traced = trace(cell, types, {.training = true, .precision = dtype::f64});
  const slot_store slots(traced);
  std::vector<double> ratio;
  for (const auto& e : store.entries()) ratio.push_back(read_element(store.value(e), 0));
  const std::array<named_scalar, 2> scalars{{{"learning_rate", 0.5}, {"step", 1.0}}};
  runtime_path({&store, &slots, arguments, scalars}).run(traced);
  for (std::size_t i = 0; i < ratio.size(); ++i)
    ratio[i] = read_element(store.value(store.entries()[i]), 0) / ratio[i];
  return ratio;
}

/// What a rule says of a net with a vector and a matrix.
struct with_bias {
  parameter<3> bias{};
  parameter<2, 3> weight{};
};
template <auto Rule>
struct bias_step {
  with_bias w{};
  constexpr var operator()(var x) const {
    const var l = sum(w.bias * x) + sum(square(w.weight));
    optim::apply(Rule, l);
    return l;
  }
};
template <auto Rule>
consteval bool is_accepted() {
  bias_step<Rule> cell{};
  builder b;
  b.training = true;
  trace_into(b, cell, std::array{tensor_type{dtype::f32, {3}}});
  return !b.failed();
}
using namespace cella::optim;
static_assert(!is_accepted<muon{}>());
static_assert(is_accepted<parts(part<"*weight">(muon{}), rest(lion{}))>());
static_assert(is_accepted<lbfgs{.history = 2}>() && !is_accepted<lbfgs{.history = 0}>());
static_assert(is_accepted<undecayed<"*bias">(adamw{})>() &&
              !is_accepted<undecayed<"*gain">(adamw{})>());
static_assert(is_accepted<lazy(lamb{})>() && is_accepted<lars{}>() && is_accepted<ftrl{}>());
static_assert(!is_accepted<ftrl{.power = 0.5}>());

}  // namespace

TEST_CASE("rules follow optax, PyTorch and the formulas of their papers") {
  const golden g = golden::open_own("rules");
  follow(g, "lion", lion{});
  follow(g, "lion_decay", lion{});
  follow(g, "lamb", lamb{});
  follow(g, "lamb_no_decay", lamb{});
  follow(g, "lars", lars{});
  follow(g, "lars_decay", lars{});
  follow(g, "proximal_adagrad", proximal_adagrad{});
  follow(g, "proximal_sgd", proximal_sgd{});
  follow(g, "ftrl", ftrl{});
  follow(g, "ftrl_penalties", ftrl{});
  follow(g, "muon", muon{});
  follow(g, "muon_plain", muon{});
  follow(g, "lazy_adam", lazy(adam{.plain_epsilon = true}));
  follow(g, "sparse_adagrad", lazy(adagrad{.initial = 0.2}));
  follow(g, "onnx_adam", adam{.epsilon = 1e-3, .weight_decay = 0.01, .plain_epsilon = true});
  follow(g, "onnx_adagrad",
         adagrad{.learning_rate_decay = 0.3, .epsilon = 1e-3, .weight_decay = 0.01});
  follow(g, "onnx_momentum",
         sgd{.momentum = 0.9, .dampening = 0.3, .weight_decay = 0.01, .nesterov = true});
  // Its steps divide by differences of gradients.
  follow<curved_valley>(g, "lbfgs", lbfgs{.history = 3}, {{-0.5, 0.75}, {1, -0.5, 0.25}}, 1e-9,
                        5e-2);
  for (const json& c : g.json())
    if (const std::string name = c.at("optimizer"); !followed().contains(name))
      FAIL_CHECK("nobody follows " << name);
}

TEST_CASE("an orthogonalized matrix has singular values near 1") {
  // Of diag(3, 1) its own are 3 and 1.
  const auto y =
      eval([](var x) { return orthogonalize(x); }, cella::test::f64({2, 2}, {3, 0, 0, 1}));
  CHECK(y.values[0] == doctest::Approx(1).epsilon(0.35));
  CHECK(y.values[3] == doctest::Approx(1).epsilon(0.35));
  CHECK(y.values[1] == 0);
}

TEST_CASE("weights whose names match do not decay") {
  const auto all = decayed(adamw{.weight_decay = 0.1});
  const auto some = decayed(undecayed<"p1">(adamw{.weight_decay = 0.1}));
  CHECK(all[0] == doctest::Approx(0.95));
  CHECK(all[1] == doctest::Approx(0.95));
  CHECK(some[0] == doctest::Approx(0.95));
  CHECK(some[1] == 1);
}
