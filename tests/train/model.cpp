#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <span>
#include <vector>

#include "digits.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr model_options small{.batch = 8};
using trained =
    model<small_net, features<6>, cross_entropy_loss{}, optim::sgd{.momentum = 0.9}, small>;
using plain = model<plain_net, features<6>, cross_entropy_loss{}, optim::adam{}, small>;
constexpr execution both[]{execution::graph, execution::eager};

template <class Model>
std::vector<float> weights(Model& m) {
  std::vector<float> all;
  for (const auto& e : m.parameters().entries()) {
    const auto* p = reinterpret_cast<const float*>(m.parameters().value(e).data);
    all.insert(all.end(), p, p + e.type.size());
  }
  return all;
}
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, double(std::abs(a[i] - b[i])));
    if (!std::isfinite(a[i])) return INFINITY;
  }
  return most;
}

}  // namespace

TEST_CASE("training in graph mode and in eager mode gives the same net, a smaller last batch too") {
  const auto data = three_classes(29).shuffle(3);  // 8 + 8 + 8 + 5
  trained graph({.seed = 4, .mode = execution::graph});
  trained eager({.seed = 4, .mode = execution::eager});
  const auto before = weights(graph);
  CHECK(before == weights(eager));
  const auto a = graph.fit(data, {.epochs = 3, .learning_rate = 0.05}, metrics::accuracy{});
  const auto b = eager.fit(data, {.epochs = 3, .learning_rate = 0.05}, metrics::accuracy{});
  REQUIRE(a.size() == 3);
  for (std::size_t e = 0; e < 3; ++e) {
    CHECK(a[e]["loss"] == doctest::Approx(b[e]["loss"]).epsilon(1e-5));
    CHECK(a[e]["accuracy"] == doctest::Approx(b[e]["accuracy"]));
    CHECK(a[e].samples == 29);
  }
  CHECK(graph.steps() == 12);
  CHECK(graph.epochs() == 3);
  CHECK(distance(weights(graph), weights(eager)) < 1e-5);
  CHECK(distance(weights(graph), before) > 1e-2);
  // Dropout drew the same numbers, because its state is the model's.
  CHECK(graph.parameters().random_state()[1] == eager.parameters().random_state()[1]);
  CHECK(graph.parameters().random_state()[1] == 12);
}

TEST_CASE("the mode can change between two steps: parameters, slots and random state are shared") {
  const auto data = three_classes(32);
  trained straight({.seed = 1, .mode = execution::graph});
  straight.fit(data, {.epochs = 4, .learning_rate = 0.05});
  trained mixed({.seed = 1, .mode = execution::eager});
  for (execution how : {execution::eager, execution::graph, execution::eager, execution::graph}) {
    mixed.mode(how);
    mixed.fit(data, {.epochs = 1, .learning_rate = 0.05});
  }
  CHECK(distance(weights(straight), weights(mixed)) < 1e-5);
}

TEST_CASE("a model learns") {
  const auto data = three_classes(96);
  for (execution how : both) {
    plain m({.seed = 2, .mode = how});
    const auto h = m.fit(data.shuffle(1), {.epochs = 30, .learning_rate = 0.02});
    CHECK(h.back()["loss"] < h.front()["loss"] / 2);
    CHECK(m.evaluate(three_classes(90, 77), metrics::accuracy{})["accuracy"] > 0.85);
  }
}

TEST_CASE("any number of rows is predicted, from any array, and a row does not see the others") {
  const auto data = three_classes(21);
  const auto all = data.column<0>();
  for (execution how : both) {
    trained m({.seed = 3, .mode = how});
    m.fit(data, {.epochs = 2, .learning_rate = 0.05});
    const auto whole = m.predict(all);
    REQUIRE(whole.shape() == shape{21, 3});
    for (int rows : {1, 2, 7, 8, 9, 16, 17, 20}) {
      const auto some = m.predict(all.data(), rows);
      REQUIRE(some.rows() == rows);
      for (std::size_t i = 0; i < some.size(); ++i)
        CHECK(some[i] == doctest::Approx(whole[i]).epsilon(1e-5));
    }
    CHECK(m.predict(all.data(), 0).size() == 0);
    CHECK(m.predict(std::vector<float>(all.begin(), all.end())).rows() == 21);
    CHECK(m.predict(all.span().first(12)).rows() == 2);
    CHECK(m.predict(all.row(4)).rows() == 1);
    CHECK(m.predict(all.row(4))[2] == doctest::Approx(whole.row(4)[2]).epsilon(1e-5));
    const auto classes = whole.classes();
    for (std::size_t i = 0; i < 21; ++i) {
      const auto row = whole.row(std::int64_t(i));
      CHECK(row[std::size_t(classes[i])] == *std::max_element(row.begin(), row.end()));
    }
  }
}

TEST_CASE("prediction follows a hand-made product") {
  for (execution how : both) {
    plain m({.seed = 8, .mode = how});
    std::vector<float> x{0.5f, -1, 2, 0.25f, 1, -2};
    const auto& net = m.net();
    double expected[3];
    for (std::size_t o = 0; o < 3; ++o) {
      expected[o] = double(net.last.bias.values()[o]);
      for (std::size_t h = 0; h < 8; ++h) {
        double sum = double(net.first.bias.values()[h]);
        for (std::size_t i = 0; i < 6; ++i)
          sum += double(net.first.weight.values()[h * 6 + i]) * double(x[i]);
        expected[o] += double(net.last.weight.values()[o * 8 + h]) * std::max(sum, 0.0);
      }
    }
    const auto y = m.predict(x);
    for (std::size_t o = 0; o < 3; ++o)
      CHECK(double(y[o]) == doctest::Approx(expected[o]).epsilon(1e-5));
  }
}

TEST_CASE("evaluation counts each sample once, whatever the batches") {
  const auto data = three_classes(21);
  for (execution how : both) {
    plain m({.seed = 5, .mode = how});
    const auto y = data.column<1>();
    const auto p = m.predict(data.column<0>());
    double loss = 0;
    for (std::size_t i = 0; i < 21; ++i) {
      const auto row = p.row(std::int64_t(i));
      double sum = 0;
      for (float z : row) sum += std::exp(double(z));
      loss += (std::log(sum) - double(row[std::size_t(y[i])])) / 21;
    }
    for (int batch : {1, 5, 8, 21, 30}) {
      CHECK(m.evaluate(data.batch(batch))["loss"] == doctest::Approx(loss).epsilon(1e-5));
    }
    const auto still = m.fit(data, {.learning_rate = 0}, metrics::accuracy{});
    CHECK(still[0]["loss"] == doctest::Approx(loss).epsilon(1e-5));
    CHECK(still[0]["accuracy"] == m.evaluate(data, metrics::accuracy{})["accuracy"]);
    metrics::confusion_matrix<3> table;
    const auto r = m.evaluate(data, metrics::accuracy{}, table, metrics::top_k<3>{});
    CHECK(r["top3"] == 1);
    CHECK(table.value() == doctest::Approx(r["accuracy"]));
    std::int64_t counted = 0;
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) counted += table(i, j);
    }
    CHECK(counted == 21);
    CHECK_THROWS_WITH_AS(
        r["loss"], doctest::Contains("no score \"loss\" among [accuracy, confusion, top3]"), error);
  }
}

TEST_CASE("frozen parameters stay bit for bit, and the others go on as if they were constants") {
  const auto data = three_classes(24);
  for (execution how : both) {
    trained m({.seed = 6, .mode = how});
    const auto keep = std::vector<float>(m.net().first.weight.values().begin(),
                                         m.net().first.weight.values().end());
    const auto last = std::vector<float>(m.net().last.weight.values().begin(),
                                         m.net().last.weight.values().end());
    m.fit(data, {.epochs = 2, .learning_rate = 0.1, .freeze = {"first.*", "norm.running*"}});
    CHECK(std::ranges::equal(m.net().first.weight.values(), keep));
    CHECK(m.net().norm.running_mean.values()[0] == 0);
    CHECK_FALSE(std::ranges::equal(m.net().last.weight.values(), last));
    m.fit(data, {.epochs = 1, .learning_rate = 0.1});
    CHECK_FALSE(std::ranges::equal(m.net().first.weight.values(), keep));
    CHECK_THROWS_WITH_AS(m.fit(data, {.freeze = "first"}),
                         "freeze: no parameter matches \"first\"; for all of this layer write "
                         "\"first.*\"",
                         error);
    CHECK_THROWS_WITH_AS(m.fit(data, {.freeze = {"conv9.*"}}),
                         doctest::Contains("no parameter matches \"conv9.*\""), error);
  }
}

TEST_CASE("data that do not fit are refused in a sentence that names both sides") {
  plain m({.mode = execution::graph});
  const auto before = weights(m);
  const auto data = three_classes(20);
  CHECK_THROWS_WITH_AS(m.fit(data.batch(5), {}),
                       doctest::Contains("batches of 5, but the model is made for 8"), error);
  const auto wide = data::tensor_dataset(data::column<float>({2, 7}, std::vector<float>(14)),
                                         data::column<std::int32_t>(std::vector<std::int32_t>(2)));
  CHECK_THROWS_WITH_AS(m.fit(wide, {}),
                       doctest::Contains("inputs are [7] per sample, but the model's [6]"), error);
  const auto bad =
      data::tensor_dataset(data::column<float>({2, 6}, std::vector<float>(12)),
                           data::column<std::int32_t>(std::vector<std::int32_t>{0, 3}));
  CHECK_THROWS_WITH_AS(
      m.fit(bad, {}),
      doctest::Contains("label 3 of sample 1 of a batch is outside the model's 3 classes"), error);
  CHECK_THROWS_WITH_AS(m.predict(std::vector<float>(13)),
                       doctest::Contains("13 elements, but a sample [6] has 6"), error);
  CHECK_THROWS_WITH_AS(m.predict(wide.column<0>()),
                       doctest::Contains("the array is [2,7], but the model takes samples [6]"),
                       error);
  CHECK_THROWS_AS(m.train_step(nullptr, nullptr, 9, 0.1), error);
  CHECK(weights(m) == before);
  CHECK(m.steps() == 0);
}

TEST_CASE("the environment chooses the mode where the program does not") {
  ::setenv("CELLA_EXECUTION", "eager", 1);
  CHECK(plain().mode() == execution::eager);
  CHECK(plain({.mode = execution::graph}).mode() == execution::graph);
  ::setenv("CELLA_EXECUTION", "fast", 1);
  CHECK_THROWS_WITH_AS(
      plain(), doctest::Contains("CELLA_EXECUTION is \"fast\"; set it to graph, eager or runtime"),
      error);
  ::setenv("CELLA_EXECUTION", "runtime", 1);
  CHECK(plain().mode() == execution::runtime);
  ::unsetenv("CELLA_EXECUTION");
  CHECK(plain().mode() == execution::graph);
}

/// Branches on a value: possible in eager mode only.
struct branching_net {
  nn::dense<6, 3> a{};
  nn::dense<6, 3> b{};
  constexpr var operator()(var x) const { return x.read(0) > 0 ? a(x) : b(x); }
};

TEST_CASE("a cell that branches on values trains in eager mode, with nothing compiled") {
  using dynamic = model<branching_net, features<6>, cross_entropy_loss{}, optim::sgd{},
                        model_options{.batch = 4, .compiled = false}>;
  // Where there are kernels, a model without programs is to be planned at run time.
  CHECK_THROWS_WITH(dynamic(), doctest::Contains("branch with cond() or run in eager mode"));
  dynamic m({.seed = 1, .mode = execution::eager});
  const std::vector<float> b(m.net().b.weight.values().begin(), m.net().b.weight.values().end());
  const std::vector<float> a(m.net().a.weight.values().begin(), m.net().a.weight.values().end());
  const std::vector<float> x(24, 1.0f);
  const std::vector<std::int32_t> y{0, 1, 2, 0};
  m.train_step(x.data(), y.data(), 4, 0.1);
  CHECK(std::ranges::equal(m.net().b.weight.values(), b));
  CHECK_FALSE(std::ranges::equal(m.net().a.weight.values(), a));
  CHECK_THROWS_AS(m.mode(execution::graph), error);
  CHECK_THROWS_AS(dynamic({.mode = execution::graph}), error);
}
