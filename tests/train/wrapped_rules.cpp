// Models whose optimizers are wrapped: in graph mode, in eager mode, in files.
#include <doctest/doctest.h>

#include <cella/optim/accumulate.hpp>
#include <cella/optim/averaged.hpp>
#include <cella/optim/clip.hpp>
#include <cella/optim/loss_scale.hpp>
#include <cella/optim/parts.hpp>
#include <cmath>
#include <vector>

#include "digits.hpp"

using namespace cella;
using namespace cella::test;

namespace {

struct net {
  nn::dense<6, 5> first{};
  nn::dense<5, 3> last{};
  constexpr var operator()(var x) const { return last(tanh(first(x))); }
};
template <auto Rule, int Batch>
using trained = model<net, features<6>, cross_entropy_loss{}, Rule,
                      model_options{.batch = Batch, .precision = dtype::f64}>;
constexpr auto wrapped = optim::averaged(
    0.5, optim::clip_by_global_norm(
             0.4, optim::parts(optim::part<"*.bias">(optim::sgd{}), optim::rest(optim::adam{}))));

template <class Model>
std::vector<double> weights(Model& m) {
  std::vector<double> all;
  for (const auto& e : m.parameters().entries()) {
    const auto v = m.parameters().template values<double>(e.name);
    all.insert(all.end(), v.begin(), v.end());
  }
  return all;
}
double distance(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

constexpr std::size_t rows = 12;
struct rows_of_data {
  std::vector<double> x;
  std::vector<std::int32_t> y;
};
const rows_of_data samples = [] {
  rows_of_data all;
  for (std::size_t i = 0; i < 6 * rows; ++i) all.x.push_back(std::sin(double(i)));
  for (std::size_t i = 0; i < rows; ++i) all.y.push_back(std::int32_t(i * i % 3));
  return all;
}();

template <auto Rule>
void check_batches() {
  trained<optim::accumulate<3>(Rule), 4> small({.seed = 2, .mode = execution::graph});
  trained<Rule, 12> large({.seed = 2, .mode = execution::graph});
  const auto before = weights(large);
  REQUIRE(weights(small) == before);
  for (int step = 0; step < 4; ++step) {
    double loss = 0;
    for (std::size_t k = 0; k < 3; ++k)
      loss += small.train_step(&samples.x[k * 24], &samples.y[k * 4], 4, 0.05) / 3;
    CHECK(loss == doctest::Approx(large.train_step(samples.x.data(), samples.y.data(), 12, 0.05)));
    CHECK(distance(weights(small), weights(large)) < 1e-12);
  }
  CHECK(distance(weights(large), before) > 1e-2);
}

}  // namespace

TEST_CASE("three steps of four samples are one step of twelve") {
  check_batches<optim::sgd{.momentum = 0.9}>();
  check_batches<optim::adam{}>();
}

TEST_CASE("wrapped rules do in eager mode what they do in graph mode, and scopes show averages") {
  using model_type = trained<wrapped, 12>;
  model_type graph({.seed = 3, .mode = execution::graph});
  model_type eager({.seed = 3, .mode = execution::eager});
  CHECK_THROWS_WITH_AS(static_cast<void>(graph.use_averages()),
                       "use_averages: no average has begun; make a training step before", error);
  std::vector<std::vector<double>> path;
  for (int step = 0; step < 3; ++step) {
    graph.train_step(samples.x.data(), samples.y.data(), 12, 0.05);
    eager.train_step(samples.x.data(), samples.y.data(), 12, 0.05);
    CHECK(distance(weights(graph), weights(eager)) < 1e-13);
    path.push_back(weights(graph));
  }
  std::vector<double> expected = path[0];
  for (std::size_t i = 0; i < expected.size(); ++i)
    expected[i] = 0.25 * path[0][i] + 0.25 * path[1][i] + 0.5 * path[2][i];
  const auto predicted = graph.predict(samples.x.data(), 1);
  const double before = predicted.data()[0];
  {
    const auto averages = graph.use_averages();
    CHECK(distance(weights(graph), expected) < 1e-15);
    CHECK(graph.predict(samples.x.data(), 1).data()[0] != before);
    CHECK_THROWS_AS(graph.train_step(samples.x.data(), samples.y.data(), 12, 0.05), error);
    CHECK_THROWS_WITH_AS(static_cast<void>(graph.use_averages()),
                         "use_averages: the averages are in use already", error);
    // What is read now would go with the averages, and training would go on from them.
    const scratch_directory dir("averages");
    const std::string file = dir / "net.safetensors";
    graph.save(file);
    const auto words = doctest::Contains("the averages are in use; let what use_averages returned");
    CHECK_THROWS_WITH_AS(graph.load(file), words, error);
    CHECK_THROWS_WITH_AS(graph.load_partial(file, {"first*"}), words, error);
    CHECK_THROWS_WITH_AS(graph.restore(graph.snapshot()), words, error);
    CHECK_THROWS_WITH_AS(graph.save(file, {.optimizer = true}), words, error);
    CHECK(distance(weights(graph), expected) < 1e-15);
  }
  CHECK(weights(graph) == path[2]);
  CHECK(graph.predict(samples.x.data(), 1).data()[0] == before);
  graph.train_step(samples.x.data(), samples.y.data(), 12, 0.05);
}

TEST_CASE("a scale that is kept with a frozen parameter goes on changing") {
  // Gradients of such inputs overflow by the first scales, whichever parameters stay as they are.
  trained<optim::dynamic_loss_scale(optim::sgd{}, {.first = 0x1p1022}), 12> m(
      {.seed = 2, .mode = execution::graph});
  std::vector<double> x = samples.x;
  for (double& v : x) v *= 0x1p20;
  const data::tensor_dataset samples_of_m(data::column<double>({std::int64_t(rows), 6}, x),
                                          data::column(samples.y));
  const std::string first = m.parameters().entries()[0].name;
  const auto before = weights(m);
  m.fit(samples_of_m, {.epochs = 40, .learning_rate = 0.1, .freeze = first});
  const auto after = weights(m);
  CHECK(distance(after, before) > 1e-3);
  CHECK(after[0] == before[0]);
}

TEST_CASE("the average of a frozen parameter is the parameter, also when it learns again") {
  trained<optim::averaged(0.9, optim::sgd{}), 12> m({.seed = 3, .mode = execution::graph});
  const data::tensor_dataset samples_of_m(data::column<double>({std::int64_t(rows), 6}, samples.x),
                                          data::column(samples.y));
  const auto first = [&] {
    const auto v = m.parameters().values<double>("first.weight");
    return std::vector<double>(v.begin(), v.end());
  };
  const auto frozen = first();
  m.fit(samples_of_m, {.epochs = 3, .learning_rate = 0.1, .freeze = "first.*"});
  CHECK(first() == frozen);
  {
    const auto averages = m.use_averages();
    CHECK(first() == frozen);
  }
  m.fit(samples_of_m, {.epochs = 1, .learning_rate = 0.1});
  std::vector<double> expected = first();
  CHECK(distance(expected, frozen) > 1e-3);
  for (std::size_t i = 0; i < expected.size(); ++i)
    expected[i] = 0.9 * frozen[i] + 0.1 * expected[i];
  const auto averages = m.use_averages();
  CHECK(distance(first(), expected) < 1e-15);
}

TEST_CASE("without averages a model says how to keep them") {
  trained<optim::adam{}, 12> m({.seed = 3, .mode = execution::graph});
  m.train_step(samples.x.data(), samples.y.data(), 12, 0.05);
  CHECK_THROWS_WITH_AS(static_cast<void>(m.use_averages()),
                       "use_averages: the optimizer keeps no averages; wrap its rule, "
                       "optim::averaged(0.999, rule)",
                       error);
}
