#include <doctest/doctest.h>

#include <cella/train/callbacks.hpp>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "digits.hpp"

using namespace cella;
using namespace cella::test;

namespace {

using plain =
    model<plain_net, features<6>, cross_entropy_loss{}, optim::sgd{}, model_options{.batch = 8}>;

struct recorder {
  std::string* calls;
  void on_train_begin(const train::fit_state&) { *calls += "("; }
  void on_epoch_begin(const train::fit_state& s) { *calls += std::to_string(s.epoch); }
  void on_batch_end(const train::fit_state& s) { *calls += s.batch == s.batches ? "B" : "b"; }
  void on_epoch_end(train::fit_state& s) { s.record.set("mine", double(s.step)); }
  void on_train_end(auto& context) { *calls += context.model.steps() == context.step ? ")" : "?"; }
};
struct stop_after_batches {
  std::int64_t count;
  void on_batch_end(train::fit_state& s) const { s.stop = s.step >= count; }
};
/// Makes the score that the test wants.
struct scripted {
  std::vector<double> values;
  std::string name = "val_loss";
  void on_epoch_end(train::fit_state& s) const { s.record.set(name, values[std::size_t(s.epoch)]); }
};
/// Shifts a parameter by one per epoch, so that epochs can be told apart.
struct marker {
  void on_epoch_begin(auto& context) const {
    context.model.net().last.bias.values()[0] = float(context.epoch);
  }
};
struct misspelt {
  void on_epoch_finish(train::fit_state&) {}
};
static_assert(train::callback<recorder, plain> && train::callback<marker, plain>);
static_assert(!train::callback<misspelt, plain> && !train::callback<int, plain>);

std::string content(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("callbacks are called in order, see the state and add scores to the record") {
  std::string calls;
  plain m;
  const auto h = m.fit(three_classes(20), {.epochs = 2}, recorder{&calls});
  CHECK(calls == "(0bbB1bbB)");
  CHECK(h[1]["mine"] == 6);
  m.fit(three_classes(20), {.epochs = 1}, recorder{&calls});
  CHECK(calls == "(0bbB1bbB)(0bbB)");
}

TEST_CASE("a callback can stop training in the middle of an epoch") {
  plain m;
  const auto h = m.fit(three_classes(40), {.epochs = 9}, stop_after_batches{7});
  CHECK(h.size() == 2);
  CHECK(m.steps() == 7);
  CHECK(h[1].samples == 16);
}

TEST_CASE("validation adds its scores to the record") {
  plain m;
  const auto test = three_classes(19, 6);
  const auto h = m.fit(three_classes(40), {.epochs = 2, .learning_rate = 0.1},
                       train::validation(test, metrics::loss{}, metrics::accuracy{}));
  const auto now = m.evaluate(test, metrics::loss{}, metrics::accuracy{});
  CHECK(h[1]["val_loss"] == now["loss"]);
  CHECK(h[1]["val_accuracy"] == now["accuracy"]);
  CHECK(h[0]["val_loss"] != h[1]["val_loss"]);
}

TEST_CASE("early stop waits for its patience and puts the best epoch back") {
  plain m;
  train::early_stop stop{.patience = 2};
  const auto h = m.fit(three_classes(8), {.epochs = 9, .learning_rate = 0}, marker{},
                       scripted{{5, 4, 3, 3.5, 3, 1, 0, 0, 0}}, stop);
  CHECK(h.size() == 5);
  CHECK(stop.best_epoch == 2);
  CHECK(m.net().last.bias.values()[0] == 2);
}

TEST_CASE(
    "early stop knows that an accuracy gets better upwards, and asks for small changes only") {
  plain m;
  train::early_stop stop{
      .monitor = "val_accuracy", .patience = 2, .minimum_change = 0.1, .restore_best = false};
  const auto h = m.fit(three_classes(8), {.epochs = 9, .learning_rate = 0}, marker{},
                       scripted{{0.1, 0.5, 0.55, 0.59, 0.9, 1, 1, 1, 1}, "val_accuracy"}, stop);
  CHECK(h.size() == 4);
  CHECK(stop.best_epoch == 1);
  CHECK(m.net().last.bias.values()[0] == 3);
  CHECK_THROWS_WITH_AS(m.fit(three_classes(8), {}, train::early_stop{}),
                       doctest::Contains("there is no score \"val_loss\" among [loss]; put "
                                         "train::validation(data, metrics...) before"),
                       error);
}

TEST_CASE("checkpoints are written every n epochs and old ones go") {
  const scratch_directory dir("checkpoints");
  plain m;
  train::checkpoint keep{.directory = dir / "sub", .prefix = "net", .every = 2, .keep_max = 2};
  m.fit(three_classes(8), {.epochs = 9}, keep);
  CHECK(keep.files().size() == 2);
  CHECK_FALSE(std::filesystem::exists(dir / "sub/net-4.safetensors"));
  CHECK(std::filesystem::exists(dir / "sub/net-6.safetensors"));
  CHECK(std::filesystem::exists(dir / "sub/net-8.safetensors"));
  plain again;
  again.load(dir / "sub/net-8.safetensors", {.optimizer = true});
  CHECK(again.epochs() == 8);
  CHECK(again.steps() == 8);
  CHECK_THROWS_AS(m.fit(three_classes(8), {}, train::checkpoint{.every = 0}), error);
}

TEST_CASE("the best checkpoint by a score is kept") {
  const scratch_directory dir("best");
  plain m;
  train::checkpoint best{.directory = dir.path(), .keep_max = 1, .best = "val_loss"};
  m.fit(three_classes(8), {.epochs = 5, .learning_rate = 0}, marker{}, scripted{{3, 2, 2.5, 1, 9}},
        best);
  REQUIRE(best.files().size() == 1);
  CHECK(best.files()[0].filename() == "checkpoint-4.safetensors");
  CHECK(std::distance(std::filesystem::directory_iterator(dir.path()), {}) == 1);
  plain again;
  again.load(best.files()[0]);
  CHECK(again.net().last.bias.values()[0] == 3);
  // Of every second epoch the second one is better than the fourth.
  train::checkpoint seldom{.directory = dir / "seldom", .every = 2, .best = "val_loss"};
  plain other;
  other.fit(three_classes(8), {.epochs = 5, .learning_rate = 0}, scripted{{3, 2, 1, 2.5, 0}},
            seldom);
  REQUIRE(seldom.files().size() == 1);
  CHECK(seldom.files()[0].filename() == "checkpoint-2.safetensors");
}

TEST_CASE("a progress bar and monitors tell of losses and times") {
  std::ostringstream bar, losses;
  plain m;
  const auto h = m.fit(three_classes(24), {.epochs = 2}, metrics::accuracy{}, train::time_monitor{},
                       train::progress_bar{&bar, data::terminal{}},
                       train::loss_monitor{.every = 2, .out = &losses});
  CHECK(bar.str().find("epoch 2/2 3/3  loss ") != std::string::npos);
  CHECK(bar.str().find("  accuracy ") != std::string::npos);
  CHECK(losses.str().starts_with("epoch 1 batch 2/3 loss "));
  CHECK(losses.str().find("epoch 2 batch 2/3 loss ") != std::string::npos);
  CHECK(h[0]["samples_per_second"] > 0);
}

TEST_CASE("the log is a table that grows by a row per epoch") {
  const scratch_directory dir("csv");
  plain m;
  const auto h =
      m.fit(three_classes(24), {.epochs = 2}, metrics::accuracy{}, train::csv_log{dir / "log.csv"});
  std::istringstream in(content(dir / "log.csv"));
  std::string line;
  std::getline(in, line);
  CHECK(line == "epoch,seconds,loss,accuracy");
  std::getline(in, line);
  std::getline(in, line);
  CHECK(line.starts_with("1,"));
  CHECK(std::stod(line.substr(line.rfind(',') + 1)) == doctest::Approx(h[1]["accuracy"]));
  CHECK_FALSE(std::getline(in, line));
}
