// Models that K-FAC trains: in all modes, from files, and in fewer steps than others take.
#include <doctest/doctest.h>

#include <algorithm>
#include <cella/data/digits.hpp>
#include <cella/nn/layers.hpp>
#include <cella/ops/activation.hpp>
#include <cella/optim/kfac.hpp>
#include <cella/optim/parts.hpp>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "digits.hpp"

using namespace cella;
using namespace cella::test;

namespace {

const std::vector<execution> modes = [] {
  std::vector all{execution::graph, execution::eager};
  if (has_compiled_kernels) all.push_back(execution::runtime);
  return all;
}();

/// Batch norm is none of its layers.
constexpr auto rule = optim::parts(optim::part<"norm.*">(optim::sgd{.momentum = 0.9}),
                                   optim::rest(optim::kfac{.damping = 0.01, .every = 3}));
using trained =
    model<small_net, features<6>, cross_entropy_loss{}, rule, model_options{.batch = 8}>;
const auto data_of = [] { return three_classes(29).shuffle(4); };  // 8 + 8 + 8 + 5

std::vector<float> weights(trained& m) {
  std::vector<float> all;
  for (const auto& e : m.parameters().entries()) {
    const auto v = m.parameters().values<float>(e.name);
    all.insert(all.end(), v.begin(), v.end());
  }
  return all;
}
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double e = std::abs(a[i] - b[i]);
    most = std::isfinite(e) ? std::max(most, e) : HUGE_VAL;
  }
  return most;
}

// ---- a deep, narrow net for digits of 7 x 7 pixels

struct narrow_net {
  nn::dense<49, 16> first{};
  nn::dense<16, 16> second{};
  nn::dense<16, 16> third{};
  nn::dense<16, 10> last{};
  constexpr var operator()(var x) const { return last(tanh(third(tanh(second(tanh(first(x))))))); }
};
constexpr int count = 200;
template <auto Rule>
using reader = model<narrow_net, features<49>, cross_entropy_loss{}, Rule,
                     model_options{.batch = count, .compiled = false}>;

struct digit_data {
  std::vector<float> x;
  std::vector<std::int32_t> y;
};
/// Generated digits, their pixels the means of 4 x 4.
digit_data digits() {
  digit_data all{std::vector<float>(std::size_t(count) * 49), {}};
  std::vector<float> image(28 * 28);
  for (int n = 0; n < count; ++n) {
    generator random(11, std::uint64_t(n));
    all.y.push_back(n % 10);
    data::draw_digit(n % 10, {}, random, std::span<float, 28 * 28>(image.data(), image.size()));
    for (int i = 0; i < 28; ++i) {
      for (int j = 0; j < 28; ++j)
        all.x[std::size_t(n * 49 + i / 4 * 7 + j / 4)] += image[std::size_t(i * 28 + j)] / 16;
    }
  }
  return all;
}
/// The least loss of all these steps.
template <auto Rule>
double least_loss(int steps, double rate) {
  static const digit_data d = digits();
  reader<Rule> m({.seed = 2, .mode = has_compiled_kernels ? execution::runtime : execution::eager});
  double least = HUGE_VAL;
  for (int k = 0; k < steps; ++k)
    least = std::min(least, m.train_step(d.x.data(), d.y.data(), count, rate));
  return least;
}

}  // namespace

TEST_CASE("all modes train the same net with K-FAC, smaller last batches, too") {
  std::vector<std::vector<float>> all;
  for (const execution mode : modes) {
    trained m({.seed = 4, .mode = mode});
    const auto before = weights(m);
    m.fit(data_of(), {.epochs = 2, .learning_rate = 0.05});
    all.push_back(weights(m));
    CHECK(distance(all[0], all.back()) < 1e-4);
    CHECK(distance(all.back(), before) > 1e-2);
  }
}

TEST_CASE("training with K-FAC goes on from a file bit for bit") {
  const scratch_directory dir("kfac");
  for (const execution mode : modes) {
    INFO("mode ", int(mode));
    trained whole({.seed = 1, .mode = mode}), first({.seed = 1, .mode = mode});
    whole.fit(data_of(), {.epochs = 3, .learning_rate = 0.05});
    // The factors are renewed in steps 1, 4 and 7; the file has those of step 4.
    first.fit(data_of(), {.epochs = 1, .learning_rate = 0.05});
    const auto path = dir / "p.safetensors";
    first.save(path, {.optimizer = true});
    trained next({.seed = 9, .mode = mode});
    next.load(path, {.optimizer = true});
    next.fit(data_of(), {.epochs = 2, .learning_rate = 0.05});
    CHECK(next.steps() == 12);
    CHECK(next.snapshot() == whole.snapshot());
  }
}

TEST_CASE("K-FAC reaches in 30 steps what momentum does not reach in 60") {
  for (const double rate : {0.1, 0.3, 1.0}) CHECK(least_loss<optim::kfac{}>(30, rate) < 0.02);
  for (const double rate : {0.03, 0.1, 0.3, 1.0, 2.0})
    CHECK(least_loss<optim::sgd{.momentum = 0.9}>(60, rate) > 0.1);
}
