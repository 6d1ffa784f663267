// Models on a mesh: fit, evaluate and save as on one device.
#include <doctest/doctest.h>

#include <atomic>
#include <cella/models/gpt.hpp>
#include <cella/nn/classification_losses.hpp>
#include <cella/ops/random_distributions.hpp>
#include <cella/optim/clip.hpp>
#include <cella/parallel/thread_ranks.hpp>
#include <cella/train/callbacks.hpp>
#include <cella/train/on_mesh.hpp>
#include <optional>
#include <sstream>

#include "train/digits.hpp"

using namespace cella;
using namespace cella::test;

using namespace cella::parallel;

/// The logits of all words, one behind the other, as the loss takes them.
struct words_net {
  models::gpt<16, 16, 2, 1, 8> net{};
  constexpr var operator()(var words) const { return reshape(net(words), {-1, 16}); }
};
struct next_word : nn::class_labels {
  constexpr var operator()(var logits, var next) const {
    return softmax_cross_entropy(logits, reshape(next, {-1}));
  }
  static constexpr tensor_type target(const tensor_type& logits) {
    return {dtype::i32, {logits[0] / 8, 8}};
  }
};

/// Random numbers and a state in inference, too.
struct noisy_net {
  nn::dense<6, 3> last{};
  state<> seen{initializer::zeros()};
  constexpr var operator()(var x) const {
    const var y = last(x + 0.2 * random_normal(x));
    const var before = operand(seen).in(*x.b);
    assign(x, seen, before + mean(square(y)));
    return y + before;
  }
};

namespace {

constexpr model_options planned{.batch = 8, .compiled = false};
/// Batch norm, dropout, and a norm of all gradients.
using classifier = model<small_net, features<6>, cross_entropy_loss{},
                         optim::clip_by_global_norm(1, optim::sgd{.momentum = 0.9}), planned>;

using writer = model<words_net, tokens<8>, next_word{}, optim::adam{}, planned>;

using noisy = model<noisy_net, features<6>, squared_error_loss{}, optim::sgd{}, planned>;
/// Labels that do not count.
using partly = model<plain_net, features<6>, nn::cross_entropy{{.ignored_label = -100}},
                     optim::sgd{.momentum = 0.9}, planned>;

template <class Target>
auto six_numbers(int n, const std::vector<int>& targets, const shape& sample = {}) {
  std::vector<float> x;
  std::vector<Target> y;
  for (int i = 0; i < 6 * n; ++i) x.push_back(float(i * 37 % 41) / 41.0f - 0.5f);
  shape all{n};
  std::size_t each = 1;
  for (int d = 0; d < sample.rank; ++d) all.push_back(sample[d]), each *= std::size_t(sample[d]);
  for (std::size_t i = 0; i < std::size_t(n) * each; ++i)
    y.push_back(Target(targets[i % targets.size()]));
  return data::tensor_dataset(data::column<float>({n, 6}, x), data::column<Target>(all, y));
}

auto sentences(int n) {
  std::vector<std::int32_t> x, y;
  for (int i = 0; i < 8 * n; ++i) {
    x.push_back(std::int32_t(7 * (i / 8) + i % 8 * (1 + i / 8 % 3)) % 16);
    y.push_back((x.back() * 5 + 3) % 16);
  }
  return data::tensor_dataset(data::column<std::int32_t>({n, 8}, x),
                              data::column<std::int32_t>({n, 8}, y));
}

/// What is seen of a training.
struct told {
  std::vector<double> losses, scores;
  std::vector<std::byte> parameters;
  std::string printed;
};
/// Trains for two epochs, with a checkpoint between them that the second one begins with.
template <class Model, class Data>
told train(const Data& samples, const run_options& options, const std::filesystem::path& file) {
  told t;
  std::ostringstream out;
  const train::loss_monitor monitor{.every = 1, .out = &out};
  const auto add = [&](const train::history& h) {
    for (const auto& record : h) {
      t.losses.push_back(record["loss"]);
      if (record.contains("accuracy")) t.scores.push_back(record["accuracy"]);
      CHECK(record.samples == samples.size());
    }
  };
  const auto fit = [&](Model& m) {
    if constexpr (std::is_same_v<Model, classifier>)
      add(m.fit(samples.shuffle(1), {.learning_rate = 0.02}, metrics::accuracy{}, monitor));
    else
      add(m.fit(samples.shuffle(1), {.learning_rate = 0.02}, monitor));
  };
  Model first(options), second(options);
  fit(first);
  first.save(file, {.optimizer = true});
  second.load(file, {.optimizer = true});
  CHECK(second.snapshot() == first.snapshot());
  fit(second);
  t.losses.push_back(second.evaluate(samples)["loss"]);
  if constexpr (std::is_same_v<Model, classifier>)
    t.scores.push_back(second.evaluate(samples, metrics::accuracy{})["accuracy"]);
  second.save(file);
  t.parameters = second.snapshot();
  t.printed = out.str();
  return t;
}

template <class Model, class Data>
void check_ranks(const Data& samples, const char* line, const strategy& s) {
  INFO(line << " " << mode_name(s.mode) << ", " << samples.size() << " samples");
  const scratch_directory here("on_mesh");
  const run_options one{.seed = 3, .mode = execution::runtime};
  const told expected = train<Model>(samples, one, here / "one.safetensors");
  CHECK(expected.losses[1] != expected.losses[0]);
  thread_ranks ranks(parse_mesh(line));
  std::vector<told> all(std::size_t(ranks.mesh().ranks()));
  ranks.run([&](int r, const communicator& c) {
    all[std::size_t(r)] =
        train<Model>(samples, {.seed = 3, .mesh = train::on_mesh(ranks.mesh(), c, s)},
                     here / "many.safetensors");
  });
  for (const told& t : all) {
    CHECK(t.losses == all[0].losses);
    CHECK(t.parameters == all[0].parameters);
    CHECK(t.scores == expected.scores);
    CHECK(t.printed.empty() == (&t != &all[0]));
  }
  REQUIRE(all[0].losses.size() == expected.losses.size());
  for (std::size_t k = 0; k < expected.losses.size(); ++k)
    CHECK(all[0].losses[k] == doctest::Approx(expected.losses[k]).epsilon(1e-5));
  // One device reads what ranks have written, bit for bit.
  Model read(one);
  read.load(here / "many.safetensors");
  CHECK(read.snapshot() == all[0].parameters);
}

std::string fault(const run_options& options) {
  try {
    classifier m(options);
    m.fit(three_classes(8), {});
  } catch (const error& e) { return e.what(); }
  return "none";
}
/// Stops the training of one rank in its third step.
struct stop_one {
  int rank;
  void on_batch_end(train::fit_context<classifier>& c) const {
    if (c.step == 3 && c.model.rank() == rank) c.stop = true;
  }
};

}  // namespace

TEST_CASE("a model learns on ranks what it learns on one device, last batches included") {
  for (const int samples : {29, 25, 24})
    for (const char* line : {"data=2", "data=3", "data=2,model=2"})
      for (const mode m : {mode::data, mode::zero1, mode::zero3, mode::automatic})
        check_ranks<classifier>(three_classes(samples), line, {.mode = m});
  check_ranks<classifier>(three_classes(29), "data=1", {.mode = mode::serial});
}

TEST_CASE("a model of sequences is divided by what is stated") {
  const strategy heads{mode::semi_automatic,
                       {{"*.qkv.*", "model", 0},
                        {"*.attention.out.weight", "model", 1},
                        {"*.up.*", "model", 0},
                        {"*.down.weight", "model", 1}}};
  check_ranks<writer>(sentences(17), "model=2", {.mode = mode::automatic});
  check_ranks<writer>(sentences(13), "data=2,model=2", heads);
  check_ranks<writer>(sentences(17), "data=3", {.mode = mode::zero2});
}

TEST_CASE("the loss of an epoch is the mean over the samples that count, on ranks, too") {
  const auto samples = six_numbers<std::int32_t>(29, {0, -100, 2, 1, 1, -100, -100, -100, 0, 2, 2});
  for (const char* line : {"data=2", "data=3", "data=2,model=2"})
    check_ranks<partly>(samples, line, {.mode = mode::data});
}

TEST_CASE("what draws random numbers or changes a state in inference does so alike on all ranks") {
  const auto samples = six_numbers<float>(29, {0, 1, 2, 1, 0}, {3});
  for (const char* line : {"data=2", "data=3"})
    for (const mode m : {mode::data, mode::zero3}) check_ranks<noisy>(samples, line, {.mode = m});
}

TEST_CASE("each rank reads its share of a batch, in the same order for any number of ranks") {
  std::atomic<int> reads = 0;
  const auto counted = three_classes(29).shuffle(1).map([&](auto& sample) {
    ++reads;
    return sample;
  });
  for (const int count : {1, 2, 4}) {
    reads = 0;
    thread_ranks ranks(parse_mesh("data=" + std::to_string(count)));
    ranks.run([&](int, const communicator& c) {
      classifier m({.mesh = train::on_mesh(ranks.mesh(), c)});
      m.fit(counted.batch(8).prefetch(), {}, metrics::accuracy{});
    });
    CHECK(reads == 29);
  }
}

TEST_CASE("what callbacks do to a model on ranks is what they do on one device") {
  const auto samples = three_classes(29).shuffle(1);
  const scratch_directory here("on_mesh_callbacks");
  const auto run = [&](const run_options& options, const char* name) {
    classifier m(options);
    train::checkpoint files{.directory = here / name, .keep_max = 1};
    train::early_stop early{.monitor = "loss", .which = train::better::higher};
    m.fit(samples, {.epochs = 3, .learning_rate = 0.05, .freeze = {"last.*"}}, files, early);
    m.load_partial(files.files()[0], {"first.*"});
    m.train_step(std::vector<float>(30, 0.5f).data(), std::vector<std::int32_t>(5, 1).data(), 5,
                 0.1);
    std::vector<float> answer(3);
    const std::vector<float> asked(6, 0.25f);
    m.predict(asked.data(), 1, answer.data());
    return answer;
  };
  const auto expected = run({.mode = execution::runtime}, "one");
  for (const mode how : {mode::data, mode::zero3}) {
    thread_ranks ranks(parse_mesh("data=2"));
    ranks.run([&](int, const communicator& c) {
      const auto found = run({.mesh = train::on_mesh(ranks.mesh(), c, {.mode = how})}, "many");
      for (std::size_t k = 0; k < 3; ++k)
        CHECK(found[k] == doctest::Approx(expected[k]).epsilon(1e-5));
    });
  }
}

TEST_CASE("a rank that stops stops all, and what it cannot do is one sentence") {
  thread_ranks ranks(parse_mesh("data=2"));
  ranks.run([&](int, const communicator& c) {
    classifier m({.mesh = train::on_mesh(ranks.mesh(), c)});
    CHECK(m.fit(three_classes(29), {}, stop_one{1}).size() == 1);
    CHECK(m.steps() == 3);
  });
  const auto sentence = [&](const char* line, const strategy& s,
                            std::optional<execution> how = {}) {
    thread_ranks them(parse_mesh(line));
    std::string said;
    them.run([&](int r, const communicator& c) {
      const std::string own = fault({.mode = how, .mesh = train::on_mesh(them.mesh(), c, s)});
      if (r == 0) said = own;
    });
    return said;
  };
  CHECK(sentence("data=2", {}, execution::eager) ==
        "a model on a mesh plans its steps when it runs; leave run_options::mode and "
        "CELLA_EXECUTION unset, or say runtime");
  CHECK(sentence("data=9", {.mode = mode::data}) ==
        "mode data: the argument x f32[8,6] is less than a sample for each of the 9 ranks of the "
        "axis data; take a larger batch or fewer ranks");
  CHECK(sentence("data=2", {mode::automatic, {{"fc.weight", "data", 0}}}) ==
        "strategy: there is no parameter, state or argument fc.weight");
  thread_ranks more(parse_mesh("data=2"));
  CHECK_THROWS_WITH_AS(more.run([&](int, const communicator& c) {
    classifier m({.mesh = train::on_mesh(more.mesh(), c)});
    m.save("/nowhere/at/all.safetensors");
  }),
                       doctest::Contains("/nowhere/at/all.safetensors"), error);
}
