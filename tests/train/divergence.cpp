// Numbers that are not finite end training with a sentence, and never take the place of good ones.
#include <doctest/doctest.h>

#include <cella/train/callbacks.hpp>
#include <cella/train/model.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "digits.hpp"

using namespace cella;
using namespace cella::test;

namespace {

using plain =
    model<plain_net, features<6>, cross_entropy_loss{}, optim::sgd{}, model_options{.batch = 8}>;
constexpr float no_number = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr execution both[]{execution::graph, execution::eager};

/// Spoils a weight behind the step, so that the loss of the next one is no number.
struct spoiler {
  std::int64_t step;
  float value = no_number;
  void on_batch_end(auto& context) const {
    if (context.step != step) return;
    context.model.net().last.bias.values()[1] = value;
    context.model.parameters().touch();
  }
};
struct counts_batches {
  int* count;
  void on_batch_end(const train::fit_state&) const { ++*count; }
};
/// Saves to the same file after each batch, whatever the weights are.
struct saver {
  std::filesystem::path path;
  void on_batch_end(auto& context) const { context.model.save(path); }
};
struct scripted {
  std::vector<double> values;
  void on_epoch_end(train::fit_state& s) const {
    s.record.set("val_loss", values[std::size_t(s.record.epoch)]);
  }
};
/// Each epoch begins with another number in a parameter.
struct marker {
  void on_epoch_begin(auto& context) const {
    context.model.net().last.bias.values()[0] = float(context.epoch);
  }
};

}  // namespace

TEST_CASE("a loss that is not finite ends training and names step, loss and learning rate") {
  for (const execution how : both) {
    for (const float bad : {no_number, infinity}) {
      plain m({.seed = 1, .mode = how});
      int told = 0;
      try {
        m.fit(three_classes(32), {.epochs = 9, .learning_rate = 0.25}, spoiler{5, bad},
              counts_batches{&told});
        FAIL("training went on");
      } catch (const train::diverged& e) {
        CHECK(e.step == 6);
        CHECK_FALSE(std::isfinite(e.loss));
        CHECK(e.learning_rate == 0.25);
        const std::string what = e.what();
        CHECK(what.starts_with("training diverges: the loss is not finite in step 6 (loss "));
        CHECK(what.find("nan, learning rate 0.25)") != what.npos);
        CHECK(what.find("check_finite = false") != what.npos);
      }
      CHECK(told == 5);
    }
  }
}

TEST_CASE("where the data are not finite, the sentence says in which column and where") {
  std::vector<float> x(16 * 6, 0.5f);
  x[9 * 6 + 2] = infinity;
  const data::tensor_dataset samples(data::column<float>({16, 6}, x),
                                     data::column(std::vector<std::int32_t>(16)));
  plain m({.seed = 1});
  CHECK_THROWS_WITH_AS(m.fit(samples, {.learning_rate = 0.25}),
                       doctest::Contains("training diverges: the loss is not finite (of the "
                                         "batch's data tensor \"inputs\" holds inf, at [1,2] of "
                                         "f32[8,6]) in step 2 (loss "),
                       train::diverged);
}

TEST_CASE("a rate that is too large ends training; check_finite = false lets it run") {
  auto data = three_classes(32);
  plain m({.seed = 1});
  CHECK_THROWS_AS(m.fit(data, {.epochs = 50, .learning_rate = 1e30}), train::diverged);
  plain free({.seed = 1});
  const auto past = free.fit(data, {.epochs = 5, .learning_rate = 1e30, .check_finite = false});
  CHECK(past.size() == 5);
  CHECK(std::isnan(past.back()["loss"]));
}

TEST_CASE("a parameter that the last step of an epoch spoils ends training, too") {
  plain m({.seed = 1});
  CHECK_THROWS_WITH_AS(
      m.fit(three_classes(32), {.learning_rate = 0.5}, spoiler{4}),
      doctest::Contains("training diverges: tensor \"last.bias\" holds nan, at [1] of f32[3] in "
                        "step 4 (loss "),
      train::diverged);
}

TEST_CASE("train_step returns what the loss is") {
  plain m({.seed = 1});
  m.net().last.bias.values()[1] = no_number;
  m.parameters().touch();
  const auto data = three_classes(8);
  CHECK(std::isnan(m.train_step(data.column<0>().data(), data.column<1>().data(), 8, 0.1)));
}

TEST_CASE("good checkpoints stay when weights diverge") {
  const scratch_directory dir("good");
  for (const bool check : {true, false}) {
    plain m({.seed = 1});
    train::checkpoint keep{.directory = dir.path(), .keep_max = 2};
    const auto train = [&] {
      m.fit(three_classes(32), {.epochs = 6, .check_finite = check}, spoiler{10}, keep);
    };
    if (check)
      CHECK_THROWS_AS(train(), train::diverged);
    else
      train();
    REQUIRE(keep.files().size() == 2);
    CHECK(keep.files().back().filename() == "checkpoint-2.safetensors");
    CHECK(std::distance(std::filesystem::directory_iterator(dir.path()), {}) == 2);
    plain good;
    good.load(keep.files().back(), {.optimizer = true});
    CHECK(good.steps() == 8);
    CHECK(good.finite());
  }
  // Nor does a callback that saves after each batch replace a good file.
  plain m({.seed = 1});
  CHECK_THROWS_WITH_AS(
      m.fit(three_classes(32), {.epochs = 6}, spoiler{10}, saver{dir / "own.safetensors"}),
      doctest::Contains("save: tensor \"last.bias\" holds nan, at [1] of f32[3]"), file_error);
  plain good;
  good.load(dir / "own.safetensors");
  CHECK(good.finite());
}

TEST_CASE("weights that are not finite are loaded only if asked for") {
  const scratch_directory dir("asked");
  for (const float bad : {no_number, infinity, -infinity}) {
    plain m({.seed = 1});
    m.net().last.weight.values()[9] = bad;
    CHECK_FALSE(m.finite());
    CHECK_THROWS_AS(m.save(dir / "m.safetensors"), file_error);
    CHECK_FALSE(std::filesystem::exists(dir / "m.safetensors"));
    for (const bool optimizer : {false, true}) {
      m.save(dir / "m.safetensors", {.optimizer = optimizer, .non_finite = true});
      plain n({.seed = 2});
      const auto before = n.snapshot();
      const std::string where =
          std::string(std::isnan(bad) ? "nan" : "inf") + ", at [1,1] of f32[3,8]";
      const auto words = doctest::Contains(("tensor \"last.weight\" holds " + where).c_str());
      CHECK_THROWS_WITH_AS(n.load(dir / "m.safetensors", {.optimizer = optimizer}), words,
                           file_error);
      CHECK_THROWS_WITH_AS(n.load_partial(dir / "m.safetensors", {"last.*"}), words, file_error);
      CHECK(n.snapshot() == before);
      n.load_partial(dir / "m.safetensors", {"first.*"});
      CHECK(n.finite());
      n.load_partial(dir / "m.safetensors", {"last.*"}, {.non_finite = true});
      CHECK(n.snapshot() == m.snapshot());
      n.load(dir / "m.safetensors", {.optimizer = optimizer, .non_finite = true});
      CHECK_FALSE(n.finite());
    }
    std::filesystem::remove(dir / "m.safetensors");
  }
}

TEST_CASE("NaN is never the best score, and early_stop waits no longer for it than for others") {
  const scratch_directory dir("scores");
  plain m({.seed = 1});
  train::checkpoint best{.directory = dir.path(), .best = "val_loss"};
  train::early_stop stop{.patience = 3};
  const double no = std::nan("");
  const double infinite = std::numeric_limits<double>::infinity();
  const auto past = m.fit(three_classes(8), {.epochs = 9, .learning_rate = 0}, marker{},
                          scripted{{no, 3, no, 2, no, -infinite, no, 1, 1}}, best, stop);
  CHECK(past.size() == 7);
  CHECK(best.best_ == 2.0);
  REQUIRE(best.files().size() == 2);
  CHECK(best.files()[1].filename() == "checkpoint-4.safetensors");
  CHECK(stop.best_epoch == 3);
  CHECK(m.net().last.bias.values()[0] == 3);

  train::early_stop all_nan{.patience = 2};
  plain n({.seed = 1});
  CHECK(n.fit(three_classes(8), {.epochs = 9, .learning_rate = 0},
              scripted{{no, no, no, no, no, no, no, no, no}}, all_nan)
            .size() == 2);
  CHECK(all_nan.best_epoch == -1);
}
