// A mixture of experts against loops over words, and its gradient against differences.
#include <doctest/doctest.h>

#include <algorithm>
#include <cella/nn/activations.hpp>  // whose cells have the names of functions that experts call
#include <cella/nn/mixture_of_experts.hpp>
#include <cella/transform/gradient.hpp>
#include <cmath>
#include <map>
#include <random>
#include <string>

#include "support/traced.hpp"

using namespace cella;

namespace {

constexpr int samples = 2, length = 7, columns = 3, hidden = 5, experts = 4;

/// The result, the imbalance, and the gradient of the sum of squares and the imbalance.
struct differentiated {
  nn::mixture_of_experts<columns, hidden, experts> mixture{};

  constexpr std::array<var, 3> operator()(var x) const {
    const nn::mixed y = mixture(x);
    const auto f = [this](var v) {
      const nn::mixed z = mixture(v);
      return sum(square(z.value)) + z.imbalance;
    };
    return {y.value, y.imbalance, grad(f)(x)};
  }
};

struct inputs {
  std::map<std::string, test::valued_tensor> of;
  double at(const char* name, int i) const { return of.at(name).values[std::size_t(i)]; }
};

/// Word by word, as the paper says it.
std::vector<double> expected(const inputs& in, double capacity, double& imbalance) {
  std::vector<double> y(std::size_t(samples * length * columns), 0.0);
  std::array<double, experts> share{}, likely{};
  for (int n = 0; n < samples; ++n) {
    std::array<int, experts> taken{};
    for (int t = 0; t < length; ++t) {
      const int at = (n * length + t) * columns;
      std::array<double, experts> p{};
      double whole = 0;
      for (int e = 0; e < experts; ++e) {
        double logit = 0;
        for (int i = 0; i < columns; ++i)
          logit += in.at("mixture.router.weight", e * columns + i) * in.at("x", at + i);
        whole += p[std::size_t(e)] = std::exp(logit);
      }
      const int e = int(std::max_element(p.begin(), p.end()) - p.begin());
      for (int k = 0; k < experts; ++k)
        likely[std::size_t(k)] += p[std::size_t(k)] / whole / (samples * length);
      share[std::size_t(e)] += 1.0 / (samples * length);
      if (taken[std::size_t(e)]++ >= int(std::ceil(capacity * length / experts))) continue;
      for (int h = 0; h < hidden; ++h) {
        double z = in.at("mixture.up_bias", e * hidden + h);
        for (int i = 0; i < columns; ++i)
          z += in.at("mixture.up", (e * columns + i) * hidden + h) * in.at("x", at + i);
        for (int i = 0; i < columns; ++i)
          y[std::size_t(at + i)] +=
              std::max(z, 0.0) * in.at("mixture.down", (e * hidden + h) * columns + i);
      }
      for (int i = 0; i < columns; ++i)
        (y[std::size_t(at + i)] += in.at("mixture.down_bias", e * columns + i)) *=
            p[std::size_t(e)] / whole;
    }
  }
  imbalance = 0;
  for (std::size_t e = 0; e < experts; ++e) imbalance += experts * share[e] * likely[e];
  return y;
}

std::vector<test::valued_tensor> run(const graph& g, const inputs& in) {
  std::vector<test::valued_tensor> all;
  for (const input_info& i : g.inputs) all.push_back(in.of.at(std::string(g.view(i.name))));
  return cella::test::run_graph(g, all);
}

}  // namespace

TEST_CASE("a mixture of experts sends each word to one expert, as far as there is room") {
  for (double capacity : {4.0, 1.0, 0.3}) {
    differentiated cell;
    cell.mixture.capacity = capacity;
    const graph g = trace(cell, std::array{tensor_type{dtype::f64, {samples, length, columns}}},
                          {.precision = dtype::f64});
    std::mt19937 random(5);
    inputs in;
    for (std::size_t i = 0; i < g.inputs.size(); ++i) {
      test::valued_tensor t{g.type(g.input(int(i))), {}};
      for (std::int64_t k = 0; k < t.type.size(); ++k)
        t.values.push_back(std::uniform_real_distribution(-1.0, 1.0)(random));
      in.of[std::string(g.view(g.inputs[i].name))] = t;
    }
    const auto found = run(g, in);
    double imbalance = 0;
    const auto y = expected(in, capacity, imbalance);
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(found[0].values[i] == doctest::Approx(y[i]));
    CHECK(found[1].values[0] == doctest::Approx(imbalance));
    const auto loss = [&](std::size_t i, double by) {
      inputs moved = in;
      moved.of["x"].values[i] += by;
      double balance = 0, sum = 0;
      for (double v : expected(moved, capacity, balance)) sum += v * v;
      return sum + balance;
    };
    for (std::size_t i = 0; i < in.of["x"].values.size(); ++i)
      CHECK(found[2].values[i] ==
            doctest::Approx((loss(i, 1e-6) - loss(i, -1e-6)) / 2e-6).epsilon(1e-5));
  }
}

TEST_CASE("a mixture of experts refuses what is no batch of sequences of its columns") {
  differentiated cell;
  try {
    trace(cell, std::array{tensor_type{dtype::f32, {2, 4}}});
    FAIL("not refused");
  } catch (const model_error& e) {
    CHECK(std::string_view(e.what()).find("mixture_of_experts: needs sequences [N,T,3] and a "
                                          "capacity above 0: ") != std::string_view::npos);
  }
}
