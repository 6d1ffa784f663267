// Training that stops anywhere goes on with the next sample, bit for bit, and so do its callbacks.
#include <doctest/doctest.h>

#include <cella/train/callbacks.hpp>
#include <cella/train/model.hpp>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "digits.hpp"

using namespace cella;
using namespace cella::test;

namespace {

using trained = model<small_net, features<6>, cross_entropy_loss{}, optim::sgd{.momentum = 0.9},
                      model_options{.batch = 8}>;

constexpr std::int64_t epochs = 3;
constexpr std::int64_t batches = 4;  // 8 + 8 + 8 + 5
auto data_of() { return three_classes(29).shuffle(4); }
const optim::schedule rate = optim::cosine{.first = 0.1, .length = optim::epochs(3)};

std::string content(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Calls `then` at one event of the training.
struct at_event {
  std::string event;
  std::int64_t step;  // of the model's life; of on_epoch_begin, how many are behind
  std::function<void(train::fit_context<trained>&)> then;

  void look(const char* e, train::fit_context<trained>& c) const {
    if (event == e && c.step == step) then(c);
  }
  void on_train_begin(train::fit_context<trained>& c) const { look("train_begin", c); }
  void on_epoch_begin(train::fit_context<trained>& c) const { look("epoch_begin", c); }
  void on_batch_end(train::fit_context<trained>& c) const { look("batch_end", c); }
  void on_epoch_end(train::fit_context<trained>& c) const { look("epoch_end", c); }
  void on_train_end(train::fit_context<trained>& c) const { look("train_end", c); }
};
/// All events at which training can be left, with the steps behind.
const std::vector<std::pair<std::string, std::int64_t>> events{
    {"train_begin", 0}, {"epoch_begin", 0}, {"epoch_begin", 4}, {"batch_end", 1},
    {"batch_end", 4},   {"batch_end", 6},   {"batch_end", 8},   {"batch_end", 11},
    {"batch_end", 12},  {"epoch_end", 4},   {"epoch_end", 8},   {"epoch_end", 12}};

/// Counts the events that reach it, in all calls of fit together.
struct counter {
  std::int64_t begins = 0, steps = 0, ends = 0;
  double sum = 0;
  std::string last;

  void state(train::state_visitor& v) {
    v("begins", begins);
    v("steps", steps);
    v("ends", ends);
    v("sum", sum);
    v("last", last);
  }
  void on_epoch_begin(const train::fit_state&) { ++begins; }
  void on_batch_end(const train::fit_state& s) {
    ++steps;
    sum += s.loss;
    last = "step " + std::to_string(s.step);
  }
  void on_epoch_end(const train::fit_state& s) {
    ++ends;
    sum += 10 * s.record["loss"];
  }
};
bool operator==(const counter& a, const counter& b) {
  return a.begins == b.begins && a.steps == b.steps && a.ends == b.ends && a.sum == b.sum &&
         a.last == b.last;
}
/// A score that the test makes, by the epoch of the model.
struct scripted {
  std::vector<double> values;
  void on_epoch_end(train::fit_state& s) const {
    s.record.set("val_loss", values[std::size_t(s.record.epoch)]);
  }
};
/// Each epoch begins with another number in a parameter.
struct marker {
  void on_epoch_begin(train::fit_context<trained>& c) const {
    if (c.batch == 0) c.model.net().last.bias.values()[0] = float(c.record.epoch);
  }
};

}  // namespace

TEST_CASE("a position saved in any hook resumes at the next sample, and so do stateful callbacks") {
  const scratch_directory dir("anywhere");
  const auto data = data_of();
  trained whole({.seed = 1, .mode = execution::graph});
  counter front, behind;
  const auto past = whole.fit(data, {.epochs = epochs, .learning_rate = rate}, front,
                              metrics::accuracy{}, behind);
  CHECK(whole.steps() == 12);
  for (const auto& [event, step] : events) {
    INFO(event, " ", step);
    const auto path = dir / "p.safetensors";
    {
      trained m({.seed = 1, .mode = execution::graph});
      m.fit(data, {.epochs = epochs, .learning_rate = rate}, counter{},
            at_event{event, step, [&](auto& c) { c.model.save(path, {.optimizer = true}); }},
            metrics::accuracy{}, counter{});
    }
    trained m({.seed = 9, .mode = execution::graph});
    m.load(path, {.optimizer = true});
    counter a, b;
    const auto rest = m.fit(data, {.epochs = epochs - m.epochs(), .learning_rate = rate}, a,
                            at_event{}, metrics::accuracy{}, b);
    CHECK(m.steps() == 12);
    CHECK(m.epochs() == 3);
    CHECK(m.snapshot() == whole.snapshot());
    CHECK(a == front);
    CHECK(b == behind);
    for (const auto& record : rest) {
      const auto& same = past[std::size_t(record.epoch)];
      CHECK(record.samples == same.samples);
      CHECK(record["loss"] == same["loss"]);
      CHECK(record["accuracy"] == same["accuracy"]);
    }
  }
}

TEST_CASE("after an exception the same model goes on, and so does a file that is saved then") {
  const scratch_directory dir("thrown");
  const auto data = data_of();
  trained whole({.seed = 1, .mode = execution::graph});
  counter all, behind;
  whole.fit(data, {.epochs = epochs, .learning_rate = rate}, all, behind);
  for (const auto& [event, step] : events) {
    INFO(event, " ", step);
    trained m({.seed = 1, .mode = execution::graph});
    counter a, b;
    const at_event thrower{event, step, [](auto&) { throw std::runtime_error("out"); }};
    CHECK_THROWS_WITH(m.fit(data, {.epochs = epochs, .learning_rate = rate}, a, thrower, b), "out");
    m.save(dir / "p.safetensors", {.optimizer = true});
    trained other({.seed = 5, .mode = execution::graph});
    other.load(dir / "p.safetensors", {.optimizer = true});
    for (trained* next : {&m, &other}) {
      counter front, back;
      next->fit(data, {.epochs = epochs - next->epochs(), .learning_rate = rate}, front, at_event{},
                back);
      CHECK(next->steps() == 12);
      CHECK(next->snapshot() == whole.snapshot());
      CHECK(front == all);
      CHECK(back == behind);
    }
  }
}

TEST_CASE(
    "stop in the middle of an epoch leaves the model there: fit goes on, in memory or saved") {
  const scratch_directory dir("stopped");
  const auto data = data_of();
  trained whole({.seed = 1, .mode = execution::graph});
  counter all;
  whole.fit(data, {.epochs = epochs, .learning_rate = rate}, all);
  for (std::int64_t step = 1; step <= 12; ++step) {
    INFO(step);
    trained m({.seed = 1, .mode = execution::graph});
    const auto past = m.fit(data, {.epochs = epochs, .learning_rate = rate}, counter{},
                            at_event{"batch_end", step, [](auto& c) { c.stop = true; }});
    CHECK(m.steps() == step);
    CHECK(m.epochs() == step / batches);
    CHECK(past.back().samples == (step % batches ? step % batches * 8 : 29));
    m.save(dir / "p.safetensors", {.optimizer = true});
    trained other({.seed = 5, .mode = execution::graph});
    other.load(dir / "p.safetensors", {.optimizer = true});
    for (trained* next : {&m, &other}) {
      counter c;
      next->fit(data, {.epochs = epochs - next->epochs(), .learning_rate = rate}, c);
      CHECK(next->steps() == 12);
      CHECK(next->snapshot() == whole.snapshot());
      if (next == &other || step % batches) CHECK(c == all);
    }
  }
}

TEST_CASE("many short pieces are one training; steps between them move no position") {
  const auto data = data_of();
  trained whole({.seed = 1, .mode = execution::graph});
  whole.fit(data, {.epochs = epochs, .learning_rate = rate});
  trained m({.seed = 1, .mode = execution::graph});
  for (int i = 0; i < 12; ++i) {
    std::int64_t first = m.steps();
    m.fit(data, {.epochs = epochs - m.epochs(), .learning_rate = rate},
          at_event{"batch_end", first + 1, [](auto& c) { c.stop = true; }});
    CHECK(m.steps() == first + 1);
  }
  CHECK(m.epochs() == 3);
  CHECK(m.snapshot() == whole.snapshot());

  trained own({.seed = 1, .mode = execution::graph});
  own.fit(data, {.epochs = 1}, at_event{"batch_end", 2, [](auto& c) { c.stop = true; }});
  const auto x = three_classes(8);
  own.train_step(x.column<0>().data(), x.column<1>().data(), 8, 0.1);
  own.fit(data, {.epochs = 1});
  CHECK(own.steps() == 5);
  CHECK(own.epochs() == 1);
}

TEST_CASE("with 0 epochs nothing is trained") {
  trained m({.seed = 1, .mode = execution::graph});
  const auto before = m.snapshot();
  CHECK(m.fit(data_of(), {.epochs = 0}).empty());
  CHECK(m.steps() == 0);
  CHECK(m.snapshot() == before);
}

TEST_CASE("the rest of an epoch wants the same number of batches; leave_epoch does without") {
  trained m({.seed = 1, .mode = execution::graph});
  m.fit(data_of(), {}, at_event{"batch_end", 2, [](auto& c) { c.stop = true; }});
  CHECK_THROWS_WITH_AS(m.fit(three_classes(8), {}),
                       doctest::Contains("stopped after batch 2 of an epoch of 4, but these data "
                                         "have 1; hand over the same data, or call leave_epoch"),
                       error);
  const scratch_directory dir("left");
  m.save(dir / "m.safetensors", {.optimizer = true});
  for (int i = 0; i < 2; ++i) {
    trained next({.seed = 2, .mode = execution::graph});
    next.load(dir / "m.safetensors", {.optimizer = true});
    next.leave_epoch();
    CHECK(next.epochs() == 1);
    next.save(dir / "m.safetensors", {.optimizer = true});
    next.fit(three_classes(8), {});
    CHECK(next.steps() == 3);
    CHECK(next.epochs() == 2);
  }
}

TEST_CASE("what changes counters is refused while fit runs") {
  trained m({.seed = 1, .mode = execution::graph});
  const auto data = data_of();
  const auto inside = [&](auto f) {
    m.fit(data, {}, at_event{"batch_end", m.steps() + 1, [&](auto& c) { f(c.model); }});
  };
  const auto words = doctest::Contains("a callback cannot do this while fit runs");
  CHECK_THROWS_WITH_AS(inside([](auto& n) { n.restart(); }), words, error);
  CHECK_THROWS_WITH_AS(inside([](auto& n) { n.leave_epoch(); }), words, error);
  CHECK_THROWS_WITH_AS(inside([&](auto& n) { n.fit(data, {}); }), words, error);
  CHECK_THROWS_WITH_AS(inside([](auto& n) { n.load("x", {.optimizer = true}); }), words, error);
  CHECK(m.steps() == 4);
}

TEST_CASE("the progress bar and the monitor go on where training stopped") {
  const auto data = data_of();
  trained m({.seed = 1, .mode = execution::graph});
  m.fit(data, {.epochs = epochs}, at_event{"batch_end", 6, [](auto& c) { c.stop = true; }});
  std::ostringstream pipe, screen, lines;
  m.fit(data, {.epochs = epochs - m.epochs()},
        train::progress_bar{&screen, data::terminal{.interactive = true, .width = 80}},
        train::progress_bar{&pipe, data::terminal{}},
        train::loss_monitor{.every = 1, .out = &lines});
  const std::string first = screen.str().substr(0, screen.str().find("\x1b[K"));
  CHECK(first.starts_with("\repoch 2/3 ["));
  CHECK(first.find("] 3/4  loss ") != first.npos);
  const auto full = std::ranges::count(first, '=');
  CHECK(full == (first.find(']') - first.find('[') - 1) * 3 / 4);
  CHECK(pipe.str().starts_with("epoch 2/3 4/4  loss "));
  CHECK(pipe.str().find("\nepoch 3/3 4/4  loss ") != std::string::npos);
  CHECK(lines.str().starts_with("epoch 2 batch 3/4 loss "));
}

namespace {

/// Trains for six epochs by scores of the test, in one go or in pieces that end at `events`.
struct watched {
  train::checkpoint best, second;
  train::early_stop stop;
  train::csv_log log;
  std::vector<std::byte> weights;
};
watched watch(const scratch_directory& dir, const std::vector<std::int64_t>& saved_at, bool late) {
  watched w;
  const std::vector<double> scores{3, 2, 2.5, 1.5, 2, 2.1, 1, 1};
  std::optional<std::filesystem::path> last;
  for (std::size_t piece = 0; piece <= saved_at.size(); ++piece) {
    trained m({.seed = 1 + piece, .mode = execution::graph});
    if (last) m.load(*last, {.optimizer = true});
    w.best = {.directory = dir / "best", .keep_max = 1, .best = "val_loss"};
    w.second = {.directory = dir / "second", .every = 2, .keep_max = 2};
    w.stop = {.patience = 2};
    w.log = {.path = dir / "log.csv"};
    const auto next = dir / ("piece" + std::to_string(piece) + ".safetensors");
    const auto save = [&](auto& c) {
      c.model.save(next, {.optimizer = true});
      throw std::runtime_error("killed");
    };
    const std::int64_t at = piece < saved_at.size() ? saved_at[piece] : -1;
    const at_event early{late ? "" : "epoch_end", at, save}, end{late ? "epoch_end" : "", at, save};
    const at_event middle{at % batches ? "batch_end" : "", at, save};
    try {
      m.fit(data_of(), {.epochs = 8 - m.epochs(), .learning_rate = 0.05}, marker{},
            scripted{scores}, early, w.best, w.second, w.stop, w.log, end, middle);
    } catch (const std::runtime_error& e) { REQUIRE(std::string(e.what()) == "killed"); }
    last = next;
    w.weights = m.snapshot();
  }
  return w;
}
std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> all;
  for (const auto& e : std::filesystem::directory_iterator(folder))
    all.push_back(e.path().filename().string());
  std::ranges::sort(all);
  return all;
}
/// The table without its column of seconds.
std::string untimed(const std::string& table) {
  std::istringstream in(table);
  std::string all;
  for (std::string line; std::getline(in, line);) {
    const auto first = line.find(',');
    all += line.substr(0, first) + line.substr(line.find(',', first + 1)) + "\n";
  }
  return all;
}

}  // namespace

TEST_CASE("best scores, patience, kept weights, logs and lists of files go on in another program") {
  const scratch_directory one("one");
  const watched whole = watch(one, {}, false);
  CHECK(names_in(one / "best") == std::vector<std::string>{"checkpoint-4.safetensors"});
  CHECK(names_in(one / "second") ==
        std::vector<std::string>{"checkpoint-4.safetensors", "checkpoint-6.safetensors"});
  CHECK(whole.stop.best_epoch == 3);
  const std::string table = untimed(content(one / "log.csv"));
  CHECK(std::ranges::count(table, '\n') == 7);
  for (const bool late : {false, true}) {
    for (const std::vector<std::int64_t>& pieces : std::vector<std::vector<std::int64_t>>{
             {4}, {8}, {12}, {16}, {20}, {4, 8, 12, 16, 20}, {3, 4, 9, 17, 20, 22}}) {
      INFO(late, " ", pieces.size(), " ", pieces[0]);
      const scratch_directory dir("pieces");
      const watched parts = watch(dir, pieces, late);
      CHECK(parts.weights == whole.weights);
      CHECK(names_in(dir / "best") == names_in(one / "best"));
      CHECK(names_in(dir / "second") == names_in(one / "second"));
      CHECK(parts.best.files().size() == 1);
      CHECK(parts.best.best_ == whole.best.best_);
      CHECK(parts.stop.best_epoch == 3);
      CHECK(parts.stop.waited_ == whole.stop.waited_);
      CHECK(untimed(content(dir / "log.csv")) == table);
    }
  }
}

TEST_CASE("a later piece of the training puts back the best weights of an earlier one") {
  const scratch_directory dir("best_of_all");
  const scripted scores{{1, 5, 5, 5, 5, 5}};
  const train::fit_options two{.epochs = 2, .learning_rate = 0};
  trained m({.seed = 1, .mode = execution::graph});
  m.fit(data_of(), two, marker{}, scores, train::early_stop{.patience = 3});
  CHECK(m.net().last.bias.values()[0] == 0);
  m.save(dir / "m.safetensors", {.optimizer = true});
  trained next({.seed = 2, .mode = execution::graph});
  next.load(dir / "m.safetensors", {.optimizer = true});
  train::early_stop stop{.patience = 3};
  next.fit(data_of(), two, marker{}, scores, stop);
  CHECK(stop.best_epoch == 0);
  CHECK(stop.waited_ == 3);
  CHECK(next.epochs() == 4);
  CHECK(next.net().last.bias.values()[0] == 0);
}

TEST_CASE("callbacks of the library forget when a new training begins") {
  const scratch_directory dir("anew");
  train::early_stop stop{.patience = 2, .restore_best = false};
  train::csv_log log{dir / "log.csv"};
  for (int i = 0; i < 2; ++i) {
    trained m({.seed = 1, .mode = execution::graph});
    CHECK(m.fit(data_of(), {.epochs = 5}, scripted{{1, 2, 3, 4, 5}}, stop, log).size() == 3);
    CHECK(std::ranges::count(content(dir / "log.csv"), '\n') == 4);
    m.restart();
    CHECK(m.fit(data_of(), {.epochs = 5}, scripted{{1, 2, 3, 4, 5}}, stop, log).size() == 3);
  }
}

TEST_CASE("a state of another kind is refused by its name") {
  const scratch_directory dir("kind");
  struct other {
    std::vector<double> steps{1, 2};
    void state(train::state_visitor& v) { v("steps", steps); }
    void on_batch_end(const train::fit_state&) {}
  };
  trained m({.seed = 1, .mode = execution::graph});
  m.fit(data_of(), {}, counter{});
  m.save(dir / "m.safetensors", {.optimizer = true});
  m.load(dir / "m.safetensors", {.optimizer = true});
  CHECK_THROWS_WITH_AS(m.fit(data_of(), {}, other{}),
                       doctest::Contains("\"cella.fit.callback.steps\" is i64[1], which is not"),
                       file_error);
}
