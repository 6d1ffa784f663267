// One model and several threads: what is refused, and what works side by side.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cella/nn/functions.hpp>
#include <cella/runtime/executable.hpp>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <support/child.hpp>
#include <thread>
#include <vector>

#include "digits.hpp"

using namespace cella;
using namespace cella::test;
using namespace std::chrono_literals;

/// Draws random numbers when it predicts, too.
struct noisy_net {
  nn::dense<6, 3> a{};
  constexpr var operator()(var x) const {
    const var y = a(x);
    return y + random_uniform(y);
  }
};
/// Counts its calls.
struct counting_net {
  nn::dense<6, 3> a{};
  state<1> calls{};
  constexpr var operator()(var x) const {
    assign(x, calls, calls + 1);
    return a(x);
  }
};
/// Wide enough for a prediction to take long, in the eyes of other threads.
struct wide_net {
  nn::dense<6, 128> first{};
  nn::dense<128, 128> second{};
  nn::dense<128, 3> last{};
  constexpr var operator()(var x) const { return last(relu(second(relu(first(x))))); }
};

namespace {

constexpr model_options small{.batch = 8};
using plain = model<plain_net, features<6>, cross_entropy_loss{}, optim::adam{}, small>;
using wide = model<wide_net, features<6>, cross_entropy_loss{}, optim::sgd{}, small>;
using trained =
    model<small_net, features<6>, cross_entropy_loss{}, optim::sgd{.momentum = 0.9}, small>;
constexpr execution both[]{execution::graph, execution::eager};

template <class T>
bool same_bits(const predictions<T>& a, const predictions<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// Runs f(0) ... f(n - 1), each in a thread of its own, all from the same moment on.
template <class F>
void at_once(int n, F f) {
  std::atomic<int> ready{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < n; ++i) {
    threads.emplace_back([&, i] {
      ++ready;
      while (ready < n) std::this_thread::yield();
      f(i);
    });
  }
}

/// A callback that lets another thread do something while `fit` waits, and keeps what it threw.
template <class F>
struct meanwhile {
  F f;
  std::string said{};
  void on_batch_end(const train::fit_state&) {
    std::jthread([&] {
      try {
        f();
      } catch (const concurrency_error& e) { said = e.what(); }
    });
  }
};

/// A callback that does with the model what callbacks do.
struct calling {
  data::tensor_dataset<float, std::int32_t> data;
  std::filesystem::path file;
  int calls = 0;
  void on_epoch_end(auto& c) {
    c.model.evaluate(data);
    c.model.predict(data.template column<0>());
    c.model.save(file, {.optimizer = true});
    c.model.load(file);
    c.model.restore(c.model.snapshot());
    auto p = c.model.predictor();
    p.predict(data.template column<0>());
    if (++calls == 2) throw error("enough");
  }
};

}  // namespace

TEST_CASE("one model in four threads: every answer is right or refused") {
  for (execution how : both) {
    wide m({.seed = 1, .mode = how});
    const auto data = three_classes(8 * 4);
    const auto x = data.column<0>();
    std::vector<predictions<float>> expected;
    for (int i = 0; i < 4; ++i) expected.push_back(m.predict(x.data() + i * 48, 8));
    std::atomic<int> right{0}, wrong{0}, refused{0};
    at_once(4, [&](int i) {
      for (int k = 0; k < (how == execution::graph ? 300 : 10); ++k) {
        try {
          const bool same = same_bits(m.predict(x.data() + i * 48, 8), expected[std::size_t(i)]);
          ++(same ? right : wrong);
        } catch (const concurrency_error& e) {
          ++refused;
          if (std::string_view(e.what()) !=
              "this model is in use by another thread; give each thread a predictor of its own "
              "(model::predictor), or let the threads take turns")
            ++wrong;
        }
      }
    });
    CHECK(wrong == 0);
    CHECK(right > 0);
    CHECK(right + refused == (how == execution::graph ? 1200 : 40));
    CHECK(same_bits(m.predict(x.data(), 8), expected[0]));
  }
}

TEST_CASE("while one thread fits a model, another thread's calls are refused and change nothing") {
  const scratch_directory folder("concurrency");
  const auto data = three_classes(16);
  trained reference({.seed = 3}), m({.seed = 3});
  reference.save(folder / "first.safetensors");
  reference.fit(data, {.epochs = 2, .learning_rate = 0.05});
  const auto before = m.snapshot();
  const auto x = data.column<0>();
  const auto y = data.column<1>();
  int calls = 0, refusals = 0;
  const auto refused = [&](auto call) {
    ++calls;
    try {
      call();
    } catch (const concurrency_error&) { ++refusals; }
  };
  meanwhile others{[&] {
    refused([&] { m.train_step(x.data(), y.data(), 8, 0.1); });
    refused([&] { m.fit(data, {}); });
    refused([&] { m.evaluate(data); });
    refused([&] { m.predict(x); });
    refused([&] { m.save(folder / "second.safetensors"); });
    refused([&] { m.load(folder / "first.safetensors"); });
    refused([&] { m.load_partial(folder / "first.safetensors", {"*"}); });
    refused([&] { m.snapshot(); });
    refused([&] { m.restore(before); });
    refused([&] { m.restart(); });
    refused([&] { m.mode(execution::eager); });
    refused([&] { m.predictor(); });
  }};
  m.fit(data, {.epochs = 2, .learning_rate = 0.05}, others);
  CHECK(calls == 4 * 12);
  CHECK(refusals == calls);
  CHECK(m.snapshot() == reference.snapshot());
  CHECK(m.steps() == 4);
  CHECK_FALSE(std::filesystem::exists(folder / "second.safetensors"));
  m.load(folder / "first.safetensors");  // the thread that was refused left nothing behind
  CHECK(m.snapshot() == before);
}

TEST_CASE("a callback may call the model that is being fitted, and an error gives it free") {
  const scratch_directory folder("callbacks");
  const auto data = three_classes(16);
  trained m({.seed = 3});
  CHECK_THROWS_WITH_AS(m.fit(data, {.epochs = 3}, calling{data, folder / "m.safetensors"}),
                       "enough", error);
  std::jthread([&] { CHECK_NOTHROW(m.predict(data.column<0>())); });
}

TEST_CASE("a call of an executable during another thread's call is refused") {
  using program = inference_program<wide_net, tensor<dtype::f32, 8, 6>>;
  wide_net net;
  parameter_store store(net, 5);
  executable<program> run(store), own(store);
  const auto x = three_classes(8).column<0>();
  std::atomic<int> refused{0}, other_words{0};
  const auto give_up = std::chrono::steady_clock::now() + 20s;
  at_once(2, [&](int) {
    while (refused == 0 && std::chrono::steady_clock::now() < give_up) {
      try {
        run(x);
      } catch (const concurrency_error& e) {
        ++refused;
        other_words += std::string_view(e.what()) !=
                       "this executable is in use by another thread; build one for each thread "
                       "over the same parameter_store";
      }
    }
  });
  CHECK(refused > 0);
  CHECK(other_words == 0);
  own(x);
  run(x);
  CHECK(std::ranges::equal(own.result(), run.result()));
}

TEST_CASE("predictors answer in many threads at once as the model does, bit for bit") {
  const auto data = three_classes(45);
  const auto x = data.column<0>();
  for (execution how : both) {
    trained m({.seed = 2, .mode = how});
    m.fit(data, {.epochs = 1, .learning_rate = 0.05});
    const std::array<int, 6> sizes{1, 3, 8, 9, 16, 45};
    std::vector<predictions<float>> expected;
    for (int rows : sizes) expected.push_back(m.predict(x.data(), rows));
    std::atomic<int> wrong{0};
    const int repeats = how == execution::graph ? 40 : 4;
    at_once(6, [&](int i) {
      auto p = m.predictor();
      for (int k = 0; k < repeats; ++k) {
        for (std::size_t s = 0; s < sizes.size(); ++s) {
          const std::size_t n = (s + std::size_t(i)) % sizes.size();
          wrong += !same_bits(p.predict(x.data(), sizes[n]), expected[n]);
        }
      }
    });
    CHECK(wrong == 0);
  }
}

TEST_CASE("predictions in several threads, as the documentation shows them") {
  plain m({.seed = 1});
  const auto data = three_classes(40);
  const auto x = data.column<0>();
  predictions<float> answers[4]{m.predict(x), m.predict(x), m.predict(x), m.predict(x)};
  const auto expected = m.predict(x);
  for (auto& a : answers) std::fill_n(a.data(), a.size(), 0.0f);
  {
    std::vector<std::jthread> threads;
    for (auto& answer : answers) {
      threads.emplace_back([&] {
        auto p = m.predictor();  // shares the weights, has an arena of its own
        answer = p.predict(x);
      });
    }
  }
  for (const auto& a : answers) CHECK(same_bits(a, expected));
}

TEST_CASE("a predictor follows the training between its predictions, and may be moved") {
  const auto data = three_classes(16);
  const auto x = data.column<0>();
  trained m({.seed = 2});
  std::vector<predictor<trained>> all;
  for (int i = 0; i < 3; ++i) all.push_back(m.predictor());
  for (int epoch = 0; epoch < 3; ++epoch) {
    m.fit(data, {.epochs = 1, .learning_rate = 0.1});
    const auto expected = m.predict(x);
    for (auto& p : all) CHECK(same_bits(p.predict(x), expected));
    std::vector<float> some(3);
    all[0].predict(x.data(), 1, some.data());
    CHECK(std::ranges::equal(some, m.predict(x.data(), 1)));
  }
  CHECK_THROWS_WITH_AS(all[0].predict(std::vector<float>(7)),
                       doctest::Contains("7 elements, but a sample [6] has 6"), error);
}

TEST_CASE("training during predictions is refused on one side or the other, never half seen") {
  const auto data = three_classes(8);
  const auto x = data.column<0>();
  const auto y = data.column<1>();
  // The answers after each number of steps.
  constexpr int steps = 40;
  std::vector<predictions<float>> after;
  wide reference({.seed = 1}), m({.seed = 1});
  for (int k = 0; k <= steps; ++k) {
    after.push_back(reference.predict(x));
    reference.train_step(x.data(), y.data(), 8, 0.05);
  }
  std::array predictors{m.predictor(), m.predictor()};
  std::atomic<bool> trained_out{false};
  std::atomic<int> wrong{0}, right{0};
  at_once(3, [&](int i) {
    if (i == 0) {
      while (m.steps() < steps) {
        // A fast machine trains all steps before the others begin: half way, it waits for them.
        if (m.steps() == steps / 2 && right + wrong == 0) {
          std::this_thread::yield();
          continue;
        }
        try {
          m.train_step(x.data(), y.data(), 8, 0.05);
          std::this_thread::sleep_for(50us);
        } catch (const concurrency_error& e) {
          CHECK(std::string_view(e.what()) ==
                "a predictor of this model is in use by another thread; train or load before or "
                "after that");
          std::this_thread::sleep_for(20us);
        }
      }
      trained_out = true;
      return;
    }
    auto& p = predictors[std::size_t(i - 1)];
    for (std::size_t step = 0; step < steps;) {
      const bool last = trained_out;
      try {
        const auto answer = p.predict(x);
        while (step < after.size() && !same_bits(answer, after[step])) ++step;
        // Nobody trains any more at the last: all steps must be seen.
        const bool good = step < after.size() && (!last || step == steps);
        ++(good ? right : wrong);
        if (!good) return;
      } catch (const concurrency_error& e) {
        if (std::string_view(e.what()) !=
            "another thread trains or loads the model of this predictor; predict before or after")
          ++wrong;
      }
      std::this_thread::sleep_for(1ms);
    }
  });
  CHECK(wrong == 0);
  CHECK(right >= 3);
  CHECK(m.snapshot() == [&] {
    wide again({.seed = 1});
    for (int k = 0; k < steps; ++k) again.train_step(x.data(), y.data(), 8, 0.05);
    return again.snapshot();
  }());
}

TEST_CASE("a predictor's net must not change itself when it predicts") {
  const auto x = three_classes(4).column<0>();
  const auto refused = doctest::Contains(
      "changes its states or draws random numbers when it predicts, so that predictors cannot "
      "share it; give each thread a model of its own");
  model<noisy_net, features<6>> noisy;
  CHECK_THROWS_WITH_AS(noisy.predictor(), refused, error);
  model<counting_net, features<6>> counting;
  CHECK_THROWS_WITH_AS(counting.predictor(), refused, error);
  // Nobody knows before it has run.
  model<counting_net, features<6>, cross_entropy_loss{}, optim::sgd{},
        model_options{.batch = 4, .compiled = false}>
      eager;
  auto p = eager.predictor();
  const auto before = eager.snapshot();
  CHECK_THROWS_WITH_AS(p.predict(x), refused, error);
  CHECK(eager.snapshot() == before);
  const float calls = eager.net().calls.values()[0];
  eager.predict(x);
  CHECK(eager.net().calls.values()[0] == calls + 1);
}

TEST_CASE("one predictor in two threads is refused") {
  wide m({.seed = 1});
  const auto x = three_classes(64).column<0>();
  auto p = m.predictor();
  const auto expected = m.predict(x);
  std::atomic<int> wrong{0}, refused{0};
  const auto give_up = std::chrono::steady_clock::now() + 20s;
  at_once(2, [&](int) {
    while (refused == 0 && std::chrono::steady_clock::now() < give_up) {
      try {
        wrong += !same_bits(p.predict(x), expected);
      } catch (const concurrency_error& e) {
        ++refused;
        wrong += std::string_view(e.what()) !=
                 "this predictor is in use by another thread; make one for each thread";
      }
    }
  });
  CHECK(wrong == 0);
  CHECK(refused > 0);
}

TEST_CASE("numbers of threads that cannot be meant are refused by a model, compiled or not") {
  for (int n : {-1, 10000}) {
    CHECK_THROWS_WITH_AS(plain({.threads = n}),
                         ("the number of threads is " + std::to_string(n) +
                          "; give 1 to 1024, or 0 for one for each core")
                             .c_str(),
                         error);
    using uncompiled = model<plain_net, features<6>, cross_entropy_loss{}, optim::sgd{},
                             model_options{.compiled = false}>;
    CHECK_THROWS_AS(uncompiled({.threads = n}), error);
  }
}

namespace {
int living_threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return int(std::distance(begin(tasks), end(tasks)));
}
}  // namespace

TEST_CASE("CELLA_THREADS gives models threads where the program does not say how many") {
  const int before = living_threads();
  const auto started = [&](const plain&) { return living_threads() - before; };
  ::setenv("CELLA_THREADS", "3", 1);
  CHECK(started(plain{}) == 2);
  CHECK(started(plain({.threads = 1})) == 0);
  CHECK(started(plain({.threads = 2})) == 1);
  ::setenv("CELLA_THREADS", "many", 1);
  CHECK_THROWS_WITH_AS(plain{}, doctest::Contains("CELLA_THREADS is \"many\"; set it to"), error);
  CHECK(started(plain({.threads = 2})) == 1);
  ::unsetenv("CELLA_THREADS");
  CHECK(started(plain{}) == 0);
}

TEST_CASE("a forked child trains and asks a model with threads, and ends; the parent goes on") {
  const auto data = three_classes(24);
  const auto x = data.column<0>();
  trained reference({.seed = 3});
  reference.fit(data, {.epochs = 2, .learning_rate = 0.05});
  const auto expected = reference.snapshot();
  for (auto pause : {0ms, 5ms}) {  // the threads spin, or are asleep
    auto m = std::make_unique<trained>(run_options{.seed = 3, .threads = 4});
    m->fit(data, {.epochs = 1, .learning_rate = 0.05});
    std::this_thread::sleep_for(pause);
    const auto child = in_child([&] {
      m->fit(data, {.epochs = 1, .learning_rate = 0.05});
      std::string said = m->snapshot() == expected ? "right" : "wrong";
      if (!same_bits(m->predict(x), reference.predict(x))) said += ", and predicts wrong";
      if (!same_bits(m->predictor().predict(x), reference.predict(x))) said += ", predictors too";
      m.reset();
      return said;
    });
    CHECK(child.text == "right");
    CHECK(child.status == 0);
    m->fit(data, {.epochs = 1, .learning_rate = 0.05});
    CHECK(m->snapshot() == expected);
  }
}
