// What fit, evaluate, predict and callbacks refuse, and damaged counters in files.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cella/interop/safetensors.hpp>
#include <cella/nn/classification_losses.hpp>
#include <cella/train/callbacks.hpp>
#include <cella/train/model.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "digits.hpp"

using namespace cella;
using namespace cella::test;

namespace {

using trained = model<small_net, features<6>, cross_entropy_loss{}, optim::sgd{.momentum = 0.9},
                      model_options{.batch = 8}>;
constexpr execution both[]{execution::graph, execution::eager};
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

data::tensor_dataset<float, std::int32_t> with_labels(std::vector<std::int32_t> y) {
  const auto n = int(y.size());
  return data::tensor_dataset(
      data::column<float>({n, 6}, std::vector<float>(std::size_t(n) * 6, 0.5f)),
      data::column<std::int32_t>(std::move(y)));
}
/// The file with other numbers in one of its tensors of integers.
void rewrite(const std::filesystem::path& from, const std::filesystem::path& to,
             const std::string& name, std::vector<std::int64_t> numbers) {
  const auto file = interop::safetensors_file::open(from);
  std::vector<interop::named_tensor> all(file.tensors().begin(), file.tensors().end());
  const auto found = std::ranges::find(all, name, &interop::named_tensor::name);
  REQUIRE(found != all.end());
  REQUIRE(found->bytes.size() == numbers.size() * 8);
  found->bytes = std::as_bytes(std::span(numbers));
  interop::write_safetensors(to, all);
}

}  // namespace

TEST_CASE("samples that are nowhere, and labels of other extents, are refused") {
  trained m({.seed = 1});
  const std::array<float, 48> x{};
  const std::array<std::int32_t, 8> y{};
  const float* const none = nullptr;
  const auto nowhere = doctest::Contains("the address of a column is null");
  CHECK_THROWS_WITH_AS(m.train_step(none, y.data(), 8, 0.1), nowhere, error);
  for (execution how : both) {
    m.mode(how);
    CHECK_THROWS_WITH_AS(
        m.train_step(x.data(), nullptr, 8, 0.1),
        "the address of column \"y\" is null, but the step reads it; hand over its "
        "memory",
        error);
  }
  CHECK(m.steps() == 0);
  CHECK_THROWS_WITH_AS(m.predict(none, 2), nowhere, error);
  CHECK_THROWS_WITH_AS(m.predictor().predict(none, 2), nowhere, error);
  CHECK(m.predict(none, 0).size() == 0);
  const data::tensor_dataset one_hot(data::column<float>({8, 6}, {x.begin(), x.end()}),
                                     data::column<std::int32_t>({8, 3}, std::vector<int>(24)));
  CHECK_THROWS_WITH_AS(m.fit(one_hot, {}),
                       doctest::Contains("the data's targets are [3] per sample, but the model's "
                                         "[], one number each; make the column's extents {n}"),
                       error);
}

TEST_CASE("labels may be nowhere where the loss does not read them, and only there") {
  const std::array<float, 48> x{};
  const std::array<float, 24> y{};
  const auto refused = doctest::Contains("the address of column \"y\" is null");
  for (execution how : both) {
    model<small_net, features<6>, [](var out, var) { return mean(square(out)); }, optim::sgd{},
          model_options{.batch = 8}>
        alone({.seed = 1, .mode = how});
    CHECK(alone.train_step(x.data(), nullptr, 8, 0.1) >= 0);
    CHECK(alone.train_step(x.data(), nullptr, 3, 0.1) >= 0);
    model<small_net, features<6>, squared_error_loss{}, optim::sgd{}, model_options{.batch = 8}>
        compared({.seed = 1, .mode = how});
    CHECK_THROWS_WITH_AS(compared.train_step(x.data(), nullptr, 8, 0.1), refused, error);
    CHECK_THROWS_WITH_AS(compared.train_step(x.data(), nullptr, 3, 0.1), refused, error);
    CHECK(compared.train_step(x.data(), y.data(), 3, 0.1) >= 0);
  }
  model<small_net, features<6>, squared_error_loss{}, optim::sgd{},
        model_options{.batch = 8, .compiled = false}>
      uncompiled({.seed = 1, .mode = execution::eager});
  CHECK_THROWS_WITH_AS(uncompiled.train_step(x.data(), nullptr, 8, 0.1), refused, error);
}

TEST_CASE("one sample may stand in braces") {
  trained m({.seed = 1});
  auto other = m.predictor();
  const std::array<float, 6> x{0, 1, 2, 3, 4, 5};
  const auto expected = m.predict(x);
  CHECK(expected.size() == 3);
  CHECK(std::ranges::equal(m.predict({0, 1, 2, 3, 4, 5}), expected));
  CHECK(std::ranges::equal(other.predict({0, 1, 2, 3, 4, 5}), expected));
  CHECK_THROWS_WITH_AS(m.predict({0, 1}), doctest::Contains("the array has 2 elements"), error);
}

TEST_CASE("data without a batch are refused by fit and evaluate") {
  for (const execution how : both) {
    trained m({.seed = 1, .mode = how});
    const auto none = with_labels({});
    const auto few = with_labels({0, 1, 2, 0, 1});
    CHECK_THROWS_WITH_AS(m.fit(none, {}),
                         doctest::Contains("fit: the data have no batch: they "
                                           "have 0 samples"),
                         error);
    CHECK_THROWS_WITH_AS(m.evaluate(none), doctest::Contains("evaluate: the data have no batch"),
                         error);
    CHECK_THROWS_WITH_AS(m.fit(data::loader(few, 8, true), {}),
                         doctest::Contains("they have 5 samples, a batch has 8"), error);
    CHECK_THROWS_WITH_AS(m.evaluate(data::loader(few, 8, true), metrics::accuracy{}),
                         doctest::Contains("they have 5 samples, a batch has 8"), error);
    CHECK_THROWS_AS(m.fit(data::loader(few, 8, true).prefetch(2), {}), error);
    CHECK(m.fit(few, {}).back().samples == 5);
  }
}

TEST_CASE("labels outside the classes are refused by fit and evaluate, in both modes") {
  for (const execution how : both) {
    for (const std::int32_t bad : {-1, 3, std::numeric_limits<std::int32_t>::max()}) {
      trained m({.seed = 1, .mode = how});
      const auto before = m.snapshot();
      const std::string text =
          "label " + std::to_string(bad) + " of sample 2 of a batch is outside";
      const auto words = doctest::Contains(text.c_str());
      for (const auto& data : {with_labels({0, 1, bad}), with_labels({0, 1, bad, 0, 1, 2, 0, 1})}) {
        CHECK_THROWS_WITH_AS(m.fit(data, {}), words, error);
        CHECK_THROWS_WITH_AS(m.evaluate(data), words, error);
        CHECK_THROWS_WITH_AS(m.evaluate(data, metrics::accuracy{}), words, error);
        CHECK_THROWS_WITH_AS(m.evaluate(data, metrics::confusion_matrix<3>{}), words, error);
      }
      CHECK(m.snapshot() == before);
    }
  }
}

TEST_CASE("labels that the loss ignores are none of the classes, and none of the samples") {
  using some_labels = model<plain_net, features<6>, nn::cross_entropy{{.ignored_label = -100}},
                            optim::sgd{}, model_options{.batch = 8}>;
  for (const execution how : both) {
    some_labels m({.seed = 1, .mode = how});
    // Of the batches of 8, 8 and 1 there count 2, 2 and none.
    const double of_0 = m.evaluate(with_labels({0}))["loss"];
    const double of_1 = m.evaluate(with_labels({1}))["loss"];
    std::vector<std::int32_t> y(17, -100);
    y[0] = y[5] = y[15] = 0;
    y[8] = 1;
    const double expected = (3 * of_0 + of_1) / 4;
    CHECK(m.evaluate(with_labels(y))["loss"] == doctest::Approx(expected));
    const auto past = m.fit(with_labels(y), {.epochs = 1, .learning_rate = 1e-9});
    CHECK(past[0]["loss"] == doctest::Approx(expected));
    CHECK(m.finite());
    CHECK_THROWS_WITH_AS(m.fit(with_labels({0, -99}), {}), doctest::Contains("label -99"), error);
  }
}

TEST_CASE("a number of rows that cannot be is refused by predict") {
  for (const execution how : both) {
    trained m({.seed = 1, .mode = how});
    const std::vector<float> x(6);
    std::vector<float> y(3);
    for (const std::int64_t rows : {std::int64_t(-1), std::int64_t(1) << 31, largest, -largest}) {
      const std::string text = "predict: the number of rows is " + std::to_string(rows);
      const auto words = doctest::Contains(text.c_str());
      CHECK_THROWS_WITH_AS(m.predict(x.data(), rows), words, error);
      CHECK_THROWS_WITH_AS(m.predict(x.data(), rows, y.data()), words, error);
      CHECK_THROWS_WITH_AS(m.predictor().predict(x.data(), rows), words, error);
    }
    CHECK(m.predict(x.data(), 0).size() == 0);
  }
}

TEST_CASE("a snapshot of another length is refused, and changes nothing") {
  trained a({.seed = 1}), b({.seed = 2});
  const auto before = b.snapshot();
  auto other = a.snapshot();
  const auto length = other.size();
  for (const std::size_t size : {std::size_t(0), std::size_t(4), length - 1, length + 1}) {
    other.resize(size);
    const std::string text = "restore: the snapshot has " + std::to_string(size) +
                             " bytes, but this model's have " + std::to_string(length);
    CHECK_THROWS_WITH_AS(b.restore(other), doctest::Contains(text.c_str()), error);
    CHECK(b.snapshot() == before);
  }
  b.restore(a.snapshot());
  CHECK(b.snapshot() == a.snapshot());
}

TEST_CASE("options out of range are refused before anything is trained") {
  trained m({.seed = 1});
  const auto data = three_classes(8);
  const auto before = m.snapshot();
  const auto refused = [&](const char* words, const train::fit_options& o, auto&&... extras) {
    CHECK_THROWS_WITH_AS(m.fit(data, o, extras...), doctest::Contains(words), error);
    CHECK(m.snapshot() == before);
    CHECK(m.steps() == 0);
  };
  const double no = std::nan("");
  refused("fit: fit_options::epochs is -1; give 0 or more", {.epochs = -1});
  refused("fit: fit_options::epochs is 9223372036854775807", {.epochs = largest});
  refused("the schedule gives nan in step 0", {.learning_rate = no});
  refused("the schedule gives -0.1", {.learning_rate = -0.1});
  refused("the schedule gives inf", {.learning_rate = INFINITY});
  refused("loss_monitor: every is 0; give at least 1", {}, train::loss_monitor{.every = 0});
  refused("loss_monitor: every is -3", {}, train::loss_monitor{.every = -3});
  refused("early_stop: patience is 0; give at least 1", {}, train::early_stop{.patience = 0});
  refused("early_stop: patience is -1", {}, train::early_stop{.patience = -1});
  refused("early_stop: minimum_change is nan", {}, train::early_stop{.minimum_change = no});
  refused("early_stop: minimum_change is -1", {}, train::early_stop{.minimum_change = -1});
  refused("checkpoint: every is -1 and keep_max 5", {}, train::checkpoint{.every = -1});
  refused("checkpoint: every is 1 and keep_max 0", {}, train::checkpoint{.keep_max = 0});
  const auto* x = data.column<0>().data();
  const auto* y = data.column<1>().data();
  for (const double rate : {no, -0.1, double(INFINITY)}) {
    CHECK_THROWS_WITH_AS(m.train_step(x, y, 8, rate),
                         doctest::Contains("train_step: the learning rate is "), error);
  }
  CHECK(m.snapshot() == before);
  CHECK(m.steps() == 0);
}

TEST_CASE("counters that cannot be are refused, and change nothing") {
  const scratch_directory dir("counters");
  trained m({.seed = 1});
  struct stop_at {
    std::int64_t step;
    void on_batch_end(train::fit_state& s) const { s.stop = s.step == step; }
  };
  m.fit(three_classes(32), {.epochs = 3}, stop_at{6}, metrics::accuracy{});
  const auto good = dir / "good.safetensors", bad = dir / "bad.safetensors";
  m.save(good, {.optimizer = true});
  trained victim({.seed = 2});
  const auto before = victim.snapshot();
  const auto refused = [&](const char* words, const char* name, std::vector<std::int64_t> numbers) {
    INFO(words);
    rewrite(good, bad, name, std::move(numbers));
    CHECK_THROWS_WITH_AS(victim.load(bad, {.optimizer = true}), doctest::Contains(words),
                         file_error);
    CHECK(victim.snapshot() == before);
    CHECK(victim.steps() == 0);
  };
  refused("\"cella.progress\" holds the count 9223372036854775807, above 2^53", "cella.progress",
          {largest, 1, 2});
  refused("above 2^53", "cella.progress", {6, largest, 2});
  refused("above 2^53", "cella.progress", {6, 1, largest});
  refused("the negative count -1", "cella.progress", {-1, 1, 2});
  refused("the negative count", "cella.progress", {6, std::numeric_limits<std::int64_t>::min(), 2});
  refused("5 epochs and 2 batches of another, but only 6 steps", "cella.progress", {6, 5, 2});
  refused("\"cella.random\" holds the count", "cella.random", {1, largest});
  refused("\"cella.random\" holds the negative count", "cella.random", {1, -5});
  refused("another position in the epoch than cella.progress", "cella.progress", {9, 1, 5});
  refused("another position in the epoch than cella.progress", "cella.progress", {6, 1, 0});
  refused("another position", "cella.fit.epoch.batches", {-4});
  refused("another position", "cella.fit.epoch.event", {17});
  refused("another position", "cella.fit.epoch.samples", {largest});
  refused("another position", "cella.fit.epoch.loss_count", {-1});
  victim.load(good, {.optimizer = true});
  CHECK(victim.steps() == 6);
  CHECK(victim.epochs() == 1);
}

TEST_CASE("a file without what newer versions remember is loaded: it goes on where it stands") {
  const scratch_directory dir("older");
  const auto data = three_classes(29).shuffle(4);
  trained whole({.seed = 1}), m({.seed = 1});
  whole.fit(data, {.epochs = 3});
  struct save_at {
    std::int64_t step;
    std::filesystem::path save;
    void on_batch_end(train::fit_context<trained>& c) const {
      if (c.step == step) c.model.save(save, {.optimizer = true});
    }
  };
  for (const std::int64_t step : {2, 4, 6, 8, 12}) {
    INFO(step);
    trained first({.seed = 1});
    first.fit(data, {.epochs = 3}, save_at{step, dir / "new.safetensors"});
    const auto file = interop::safetensors_file::open(dir / "new.safetensors");
    std::vector<interop::named_tensor> old;
    for (const auto& t : file.tensors())
      if (!t.name.starts_with("cella.fit.")) old.push_back(t);
    REQUIRE(old.size() < file.tensors().size());
    interop::write_safetensors(dir / "old.safetensors", old);
    trained rest({.seed = 7});
    rest.load(dir / "old.safetensors", {.optimizer = true});
    rest.fit(data, {.epochs = 3 - rest.epochs()});
    CHECK(rest.steps() == 12);
    CHECK(rest.epochs() == 3);
    CHECK(rest.snapshot() == whole.snapshot());
  }
}
