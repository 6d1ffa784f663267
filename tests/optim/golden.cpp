#include "support/golden.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cella/ops/convolution.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/runtime/compiled_once.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/train/runtime_path.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

using namespace cella;
using namespace cella::test;

/// Parameters of any shapes, set at run time, whose gradients are arguments.
template <class Optimizer>
struct eager_cell {
  std::vector<parameter<1>> p{};
  Optimizer optimizer{};

  void operator()(const std::vector<var>& gradients) const {
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      optim::context c(*gradients[i].b, std::int32_t(i));
      optimizer(c, gradients[i]);
    }
  }
};
/// A piece of a parameter: updates do not look at neighbours, so any shape can be cut into these.
constexpr int piece = 8;
template <auto Optimizer>
struct compiled_cell {
  parameter<piece> p{};

  constexpr var operator()(var gradient) const {
    optim::context c(*gradient.b, 0);
    Optimizer(c, gradient);
    return sum(gradient);
  }
};

namespace {

// The options of a case, in PyTorch's words.
using nlohmann::json;
optim::sgd options_of(const optim::sgd&, const json& o) {
  return {.momentum = o.at("momentum"),
          .dampening = o.at("dampening"),
          .weight_decay = o.at("weight_decay"),
          .nesterov = o.at("nesterov")};
}
template <class T>
T with_betas(T r, const json& o) {
  r.beta1 = o.at("betas").at(0);
  r.beta2 = o.at("betas").at(1);
  r.epsilon = o.at("eps");
  r.weight_decay = o.at("weight_decay");
  return r;
}
optim::adam options_of(const optim::adam& like, const json& o) {
  auto r = with_betas(like, o);
  r.amsgrad = o.at("amsgrad");
  r.decoupled = o.at("decoupled_weight_decay");
  return r;
}
optim::adamw options_of(const optim::adamw& like, const json& o) {
  auto r = with_betas(like, o);
  r.amsgrad = o.at("amsgrad");
  return r;
}
optim::adamax options_of(const optim::adamax& like, const json& o) { return with_betas(like, o); }
optim::radam options_of(const optim::radam& like, const json& o) { return with_betas(like, o); }
optim::nadam options_of(const optim::nadam& like, const json& o) {
  auto r = with_betas(like, o);
  r.momentum_decay = o.at("momentum_decay");
  return r;
}
optim::rmsprop options_of(const optim::rmsprop&, const json& o) {
  return {.decay = o.at("alpha"),
          .epsilon = o.at("eps"),
          .weight_decay = o.at("weight_decay"),
          .momentum = o.at("momentum"),
          .centered = o.at("centered")};
}
optim::adagrad options_of(const optim::adagrad&, const json& o) {
  return {.learning_rate_decay = o.at("lr_decay"),
          .epsilon = o.at("eps"),
          .weight_decay = o.at("weight_decay")};
}
optim::adadelta options_of(const optim::adadelta&, const json& o) {
  return {.decay = o.at("rho"), .epsilon = o.at("eps"), .weight_decay = o.at("weight_decay")};
}
template <class T>
bool same_options(const T& a, const T& b) {
  constexpr int n = detail::member_count<T>();
  return detail::tie_members<n>(a) == detail::tie_members<n>(b);
}

std::string numbered(const std::string& name, int i) { return name + "." + std::to_string(i); }

/// The ways in which a rule runs whose options are known at run time.
enum class tier { eager, interpreted, planned };

template <dtype Element, class Optimizer>
double runtime_error(tier how, const golden& g, const std::string& name, double rate,
                     const Optimizer& rule) {
  eager_cell<Optimizer> cell{{}, rule};
  std::vector<tensor_type> types;
  for (int i = 0; g.contains(numbered("initial", i)); ++i) {
    types.push_back({Element, g.tensor(numbered("initial", i)).shape});
    cell.p.emplace_back();
    cell.p.back().extents = types.back().shape;
  }
  parameter_store store(cell, 0, Element);
  auto value = [&](std::size_t i) { return store.value(store.entries()[i]); };
  std::vector<aligned_buffer> memory;
  std::vector<tensor_ref> gradients;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const auto first = g.tensor(numbered("initial", int(i))).values;
    for (std::size_t k = 0; k < first.size(); ++k)
      write_element(value(i), std::int64_t(k), first[k]);
    memory.emplace_back(std::size_t(types[i].bytes()));
    gradients.push_back({memory.back().data(), types[i]});
  }
  // The slots, from a trace.
  auto append = [&](builder& b) {
    b.precision = Element;
    bind_cell(b, cell);
    std::vector<var> given;
    for (const auto& t : types) given.push_back({&b, b.input(t, input_role::argument, "gradient")});
    cell(given);
    ids outputs;
    for (const auto& u : b.bodies.updates) {
      outputs.push_back(u.value);
      b.g.outputs.push_back({u.input, {}});
    }
    b.end(outputs);
  };
  builder traced;
  append(traced);
  const slot_store slots(traced.g);
  const graph optimized = compiled_once::optimize(traced.g);
  loaded_program planned(optimized, Element);

  double worst = 0;
  int step = 0;
  for (; g.contains(numbered(name, step) + ".0"); ++step) {
    for (std::size_t i = 0; i < types.size(); ++i) {
      const auto v = g.tensor(numbered(numbered("gradient", step), int(i))).values;
      for (std::size_t k = 0; k < v.size(); ++k) write_element(gradients[i], std::int64_t(k), v[k]);
    }
    const std::array<named_scalar, 2> scalars{{{"learning_rate", rate}, {"step", step + 1.0}}};
    runtime_path run({&store, &slots, gradients, scalars});
    if (how == tier::planned)
      run.run(optimized, planned);
    else if (how == tier::interpreted)
      run.run(optimized);
    else
      run.run_eagerly(append);
    for (std::size_t i = 0; i < types.size(); ++i) {
      const auto expected = g.tensor(numbered(numbered(name, step), int(i))).values;
      for (std::size_t k = 0; k < expected.size(); ++k) {
        const double e = std::abs(read_element(value(i), std::int64_t(k)) - expected[k]);
        worst = std::isfinite(e) ? std::max(worst, e) : 1e9;
      }
    }
  }
  CHECK(step > 0);
  return worst;
}

template <dtype Element, auto Optimizer>
double graph_error(const golden& g, const std::string& name, double rate) {
  using T = element<Element>;
  using cell = compiled_cell<Optimizer>;
  using P = program<cell, true, Element, tensor<Element, piece>>;
  double worst = 0;
  for (int i = 0; g.contains(numbered("initial", i)); ++i) {
    const auto first = g.tensor(numbered("initial", i)).values;
    for (std::size_t from = 0; from < first.size(); from += piece) {
      const std::size_t count = std::min(first.size() - from, std::size_t(piece));
      cell c;
      parameter_store store(c, 0, Element);
      const auto p = c.p.template values<T>();
      for (std::size_t k = 0; k < count; ++k) p[k] = T(first[from + k]);
      executable<P> run(store);
      for (int step = 0; g.contains(numbered(name, step) + ".0"); ++step) {
        const auto gradient = g.tensor(numbered(numbered("gradient", step), i)).values;
        const auto expected = g.tensor(numbered(numbered(name, step), i)).values;
        std::array<T, piece> now{};
        for (std::size_t k = 0; k < count; ++k) now[k] = T(gradient[from + k]);
        constexpr int rate_at = P::scalar("learning_rate"), step_at = P::scalar("step");
        run.scalar(rate_at, rate);
        if (step_at >= 0) run.scalar(step_at, step + 1);
        run(now);
        for (std::size_t k = 0; k < count; ++k) {
          const double e = std::abs(double(p[k]) - expected[from + k]);
          worst = std::isfinite(e) ? std::max(worst, e) : 1e9;
        }
      }
    }
  }
  return worst;
}

/// Ours with the options of `Optimizer`, which are those of the case `name`, against that. A rule
/// compiles to the same kernels in both precisions, so that few are compiled in f32 as well.
template <auto Optimizer, bool Single = false>
void follow(const golden& g, const std::string& name) {
  for (const auto& c : g.json()) {
    if (c.at("optimizer") != name) continue;
    const double rate = c.at("defaults").at("lr");
    const auto rule = options_of(Optimizer, c.at("defaults"));
    INFO(name);
    for (const tier how : {tier::eager, tier::interpreted, tier::planned}) {
      CAPTURE(int(how));
      CHECK(runtime_error<dtype::f64>(how, g, name, rate, rule) < 1e-11);
      CHECK(runtime_error<dtype::f32>(how, g, name, rate, rule) < 2e-6);
    }
    REQUIRE(same_options(rule, Optimizer));
    CHECK(graph_error<dtype::f64, Optimizer>(g, name, rate) < 1e-11);
    if constexpr (Single) CHECK(graph_error<dtype::f32, Optimizer>(g, name, rate) < 2e-6);
    return;
  }
  FAIL_CHECK("the file has no case " << name);
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("gradient descent follows PyTorch: weight decay, momentum, Nesterov") {
    const auto g = golden::open("optimizers");
    follow<optim::sgd{}>(g, "sgd");
    follow<optim::sgd{.weight_decay = 0.01}>(g, "sgd_weight_decay");
    follow<optim::sgd{.momentum = 0.9}, true>(g, "momentum");
    follow<optim::sgd{.momentum = 0.9, .nesterov = true}>(g, "nesterov");
  }
  TEST_CASE("Adam and its variants follow PyTorch") {
    const auto g = golden::open("optimizers");
    follow<optim::adam{}, true>(g, "adam");
    follow<optim::adam{.weight_decay = 0.01}>(g, "adam_l2");
    follow<optim::adam{.amsgrad = true}>(g, "amsgrad");
    follow<optim::adamw{.weight_decay = 0.1}>(g, "adamw");
    follow<optim::adamax{}>(g, "adamax");
    follow<optim::nadam{}>(g, "nadam");
    follow<optim::radam{}>(g, "radam");
  }
  TEST_CASE("RMSProp, Adagrad and Adadelta follow PyTorch") {
    const auto g = golden::open("optimizers");
    follow<optim::rmsprop{.decay = 0.9}>(g, "rmsprop");
    follow<optim::rmsprop{.decay = 0.9, .momentum = 0.9, .centered = true}>(
        g, "rmsprop_centered_momentum");
    follow<optim::adagrad{}>(g, "adagrad");
    follow<optim::adadelta{}>(g, "adadelta");
  }
}
