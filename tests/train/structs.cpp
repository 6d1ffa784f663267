// Several inputs and outputs of a model: structs, against the same net by hand.
#include <doctest/doctest.h>

#include <cella/data/dataset.hpp>
#include <cella/nn/layers.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/train/model.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

using namespace cella;

/// The items of a receipt: which they are, how many of each, and what is paid beside.
struct receipt {
  integers<3> items;
  features<3> amounts;
  features<1> tip;
};
/// The sum, and the mean price of an item.
struct answers {
  var total;
  var mean_price;
};
struct prices {
  parameter<5, 1> each{initializer::ones()};
  constexpr answers operator()(const receipt& r) const {
    const var price = reshape(gather(each, r.items), {-1, 3});
    return {sum(price * r.amounts, {1}, true) + r.tip, mean(price, {1}, true)};
  }
};
/// The same, with one var for each member.
struct listed_prices {
  parameter<5, 1> each{initializer::ones()};
  constexpr answers operator()(var items, var amounts, var tip) const {
    const var price = reshape(gather(each, items), {-1, 3});
    return {sum(price * amounts, {1}, true) + tip, mean(price, {1}, true)};
  }
};
/// The squared error, weighted by the amounts.
inline constexpr auto weighted = [](const answers& y, const receipt& r, var paid) {
  return mean(square(y.total - paid) * sum(r.amounts, {1}, true));
};
inline constexpr auto of_outputs = [](const answers& y, var paid) {
  return mean(square(y.total - paid));
};
/// What receipts cost is known; the tip says how much it should have been.
inline constexpr auto without_target = [](const answers& y, const receipt& r) {
  return mean(square(y.total - r.tip));
};
/// The largest error of the total, and the sum of what the inputs were.
struct largest_error {
  static std::string name() { return "largest"; }
  void reset() { value_ = 0; }
  template <class P, class In, class T>
  void update(const P& prediction, const In& inputs, const T& target) {
    const auto& [total, each] = prediction;
    const auto& [items, amounts, tip] = inputs;
    for (std::size_t i = 0; i < target.size(); ++i) {
      value_ = std::max(value_, std::abs(double(total[i] - target[i])));
      amounts_seen += double(amounts[3 * i]);
    }
    CHECK(each.extents() == total.extents());
    CHECK(items.extents() == amounts.extents());
    CHECK(tip.extents() == total.extents());
  }
  double value() const { return value_; }

  double value_{}, amounts_seen{};
};

namespace {

constexpr model_options small{.batch = 4};
const std::vector<execution> modes = [] {
  std::vector all{execution::graph, execution::eager};
  if (has_compiled_kernels) all.push_back(execution::runtime);
  return all;
}();
template <auto Loss, class Net = prices, model_options Options = small>
using shop = model<Net, receipt, Loss, optim::sgd{}, Options>;

struct receipts {
  std::vector<std::int32_t> items;
  std::vector<float> amounts, tips, paid;
  explicit receipts(int n) {
    constexpr float price[]{0.5f, 2, 1, 3, 1.5f};
    for (int i = 0; i < n; ++i) {
      float total = tips.emplace_back(0.25f * float(i % 3));
      for (int k = 0; k < 3; ++k) {
        items.push_back((i * 7 + k * (i + 3)) % 5);
        amounts.push_back(float((i + k) % 4) * 0.5f);
        total += price[items.back()] * amounts.back();
      }
      paid.push_back(total);
    }
  }
  int size() const { return int(paid.size()); }
  auto data() const {
    const int n = size();
    return data::tensor_dataset(
        data::column<std::int32_t>({n, 3}, items), data::column<float>({n, 3}, amounts),
        data::column<float>({n, 1}, tips), data::column<float>({n, 1}, paid));
  }
  /// Of one receipt, with these prices.
  double total(std::size_t i, std::span<const float> price) const {
    double sum = tips[i];
    for (std::size_t k = 0; k < 3; ++k)
      sum += double(price[std::size_t(items[3 * i + k])]) * double(amounts[3 * i + k]);
    return sum;
  }
};
template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const error& e) { return e.what(); }
  return "";
}

}  // namespace

TEST_CASE("a struct of inputs: prices are found, in every mode, with a smaller last batch") {
  const receipts all(23);  // five batches of 4, and 3
  for (execution how : modes) {
    shop<weighted> m({.mode = how});
    const double before = m.evaluate(all.data())["loss"];
    const auto h = m.fit(all.data(), {.epochs = 300, .learning_rate = 0.02}, largest_error{});
    CHECK(h.back().samples == 23);
    CHECK(h.back()["loss"] < before / 1000);
    const auto found = m.parameters().values<float>("each");
    constexpr double price[]{0.5, 2, 1, 3, 1.5};
    for (std::size_t i = 0; i < 5; ++i) CHECK(found[i] == doctest::Approx(price[i]).epsilon(0.02));

    // The loss and a metric see outputs, inputs and target.
    double loss = 0, largest = 0, amounts = 0;
    for (std::size_t i = 0; i < 23; ++i) {
      const double e = all.total(i, found) - double(all.paid[i]);
      loss += e * e * double(all.amounts[3 * i] + all.amounts[3 * i + 1] + all.amounts[3 * i + 2]);
      largest = std::max(largest, std::abs(e));
      amounts += double(all.amounts[3 * i]);
    }
    largest_error metric;
    const auto scores = m.evaluate(all.data(), metrics::loss{}, metric);
    CHECK(scores["loss"] == doctest::Approx(loss / 23).epsilon(1e-3));
    CHECK(scores["largest"] == doctest::Approx(largest).epsilon(1e-3));
    CHECK(metric.amounts_seen == doctest::Approx(amounts));
  }
}

TEST_CASE(
    "any number of rows is predicted, by a predictor too, and a row does not see the others") {
  const receipts all(11);
  for (execution how : modes) {
    shop<of_outputs, listed_prices> m({.mode = how});
    m.fit(all.data(), {.epochs = 2, .learning_rate = 0.02});
    const auto price = m.parameters().values<float>("each");
    auto p = m.predictor();
    for (int rows : {0, 1, 2, 4, 5, 8, 11}) {
      const auto [total, mean_price] =
          m.predict({all.items.data(), all.amounts.data(), all.tips.data()}, rows);
      REQUIRE(total.shape() == shape{rows, 1});
      REQUIRE(mean_price.shape() == shape{rows, 1});
      const auto [again, mean_again] =
          p.predict({all.items.data(), all.amounts.data(), all.tips.data()}, rows);
      for (std::size_t i = 0; i < std::size_t(rows); ++i) {
        CHECK(total[i] == doctest::Approx(all.total(i, price)).epsilon(1e-6));
        CHECK(total[i] == again[i]);
        CHECK(mean_price[i] == mean_again[i]);
      }
    }
    const auto [total, each] = m.predict(all.items, all.amounts, all.tips);
    CHECK(total.rows() == 11);
    CHECK(each.size() == 11);
  }
}

TEST_CASE("a loss without a target takes data without one, and one step is by hand") {
  constexpr model_options two{.batch = 2};
  const receipts all(2);
  for (execution how : modes) {
    shop<without_target, prices, two> m({.mode = how});
    double loss = 0, gradient[5]{};
    const std::vector<float> ones(5, 1);
    for (std::size_t i = 0; i < 2; ++i) {
      const double e = all.total(i, ones) - double(all.tips[i]);
      loss += e * e / 2;
      for (std::size_t k = 0; k < 3; ++k)
        gradient[all.items[3 * i + k]] += e * double(all.amounts[3 * i + k]);
    }
    CHECK(m.train_step({all.items.data(), all.amounts.data(), all.tips.data()}, nullptr, 2, 0.1) ==
          doctest::Approx(loss));
    const auto price = m.parameters().values<float>("each");
    for (std::size_t i = 0; i < 5; ++i)
      CHECK(price[i] == doctest::Approx(1 - 0.1 * gradient[i]).epsilon(1e-5));
    const auto data = data::tensor_dataset(data::column<std::int32_t>({2, 3}, all.items),
                                           data::column<float>({2, 3}, all.amounts),
                                           data::column<float>({2, 1}, all.tips));
    CHECK(m.fit(data, {.epochs = 3, .learning_rate = 0.01}).size() == 3);
    CHECK(m.evaluate(data)["loss"] < loss);
  }
}

TEST_CASE("a model without programs, saved and loaded: the same numbers") {
  constexpr model_options uncompiled{.batch = 4, .compiled = false};
  const receipts all(10);
  shop<weighted> m({.mode = execution::graph});
  shop<weighted, prices, uncompiled> other({.mode = execution::eager});
  m.fit(all.data(), {.epochs = 3, .learning_rate = 0.02});
  other.fit(all.data(), {.epochs = 3, .learning_rate = 0.02});
  const auto a = m.parameters().values<float>("each"), b = other.parameters().values<float>("each");
  for (std::size_t i = 0; i < 5; ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-6));
  const auto file = std::filesystem::temp_directory_path() / "cella_structs.safetensors";
  m.save(file, {.optimizer = true});
  shop<weighted> loaded;
  loaded.load(file, {.optimizer = true});
  std::filesystem::remove(file);
  CHECK(loaded.steps() == m.steps());
  const auto [expected, p] = m.predict(all.items, all.amounts, all.tips);
  const auto [found, q] = loaded.predict(all.items, all.amounts, all.tips);
  for (std::size_t i = 0; i < 10; ++i) CHECK(expected[i] == found[i]);
}

TEST_CASE("what does not fit is named by the member") {
  const receipts all(4);
  constexpr model_options uncompiled{.batch = 4, .compiled = false};
  shop<weighted, prices, uncompiled> m({.mode = execution::eager});
  const auto wide = data::tensor_dataset(
      data::column<std::int32_t>({4, 3}, all.items), data::column<float>({4, 3, 1}, all.amounts),
      data::column<float>({4, 1}, all.tips), data::column<float>({4, 1}, all.paid));
  CHECK(message_of([&] { m.evaluate(wide); }) ==
        "the data's \"amounts\" (column 1) are [3,1] per sample, but the model's [3]; reshape the "
        "data, or change the model's input or loss");
  CHECK(message_of([&] { m.predict(all.items, std::vector<float>(9), all.tips); }) ==
        "predict: items has 4 samples, but amounts has 3; hand over as many of each");
  CHECK(message_of([&] { m.predict(all.items, std::vector<float>(10), all.tips); }) ==
        "predict: amounts has 10 elements, but a sample [3] has 3; hand over whole samples");
  using engine = shop<weighted, prices, uncompiled>::engine_type;
  CHECK(detail::find_columns_fault<engine, data::batch<float, float, float, float>>().view() ==
        "the data's \"items\" (column 0) are numbers, but the model's are integers");
  CHECK(detail::find_columns_fault<engine, data::batch<std::int32_t, float, float>>().view() ==
        "the data have 3 columns, but the model takes 4: \"items\" (column 0), \"amounts\" (column "
        "1), \"tip\" (column 2), targets");
}
