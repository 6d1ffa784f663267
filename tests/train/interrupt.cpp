// Ctrl-C, as a signal that the program sends to itself.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cella/train/callbacks.hpp>
#include <cella/train/model.hpp>
#include <csignal>
#include <optional>

#include "digits.hpp"

using namespace cella;
using namespace cella::test;

namespace {

using trained = model<small_net, features<6>, cross_entropy_loss{}, optim::sgd{.momentum = 0.9},
                      model_options{.batch = 8}>;

struct raise_at {
  std::int64_t step;
  void on_batch_end(const train::fit_state& s) const {
    if (s.step == step) std::raise(SIGINT);
  }
};
volatile std::sig_atomic_t own_calls = 0;
void own_handler(int) { own_calls = own_calls + 1; }

/// How a process ends that runs `f`: the signal that killed it, or 0.
template <class F>
int signal_that_ends(F f) {
  const pid_t child = ::fork();
  if (child == 0) {
    f();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace

TEST_CASE("an interrupt stops training after the batch at hand, and it goes on from there") {
  const scratch_directory dir("interrupt");
  const auto data = three_classes(29).shuffle(4);
  trained whole({.seed = 1}), m({.seed = 1});
  whole.fit(data, {.epochs = 3});
  train::stop_on_interrupt ctrl_c;
  const auto past = m.fit(data, {.epochs = 3}, raise_at{6}, ctrl_c);
  CHECK(ctrl_c.interrupted);
  CHECK(m.steps() == 6);
  CHECK(m.epochs() == 1);
  CHECK(past.size() == 2);
  m.save(dir / "m.safetensors", {.optimizer = true});
  trained next({.seed = 3});
  next.load(dir / "m.safetensors", {.optimizer = true});
  next.fit(data, {.epochs = 3 - next.epochs()}, ctrl_c);
  CHECK_FALSE(ctrl_c.interrupted);
  CHECK(next.snapshot() == whole.snapshot());
}

TEST_CASE("the handler that was there before comes back, also after an exception") {
  own_calls = 0;
  auto* const before = std::signal(SIGINT, own_handler);
  trained m({.seed = 1});
  struct thrower {
    void on_batch_end(const train::fit_state&) const { throw error("out"); }
  };
  m.fit(three_classes(29), {}, raise_at{2}, train::stop_on_interrupt{});
  CHECK(own_calls == 0);
  CHECK(m.steps() == 2);
  std::raise(SIGINT);
  CHECK(own_calls == 1);
  CHECK_THROWS_AS(m.fit(three_classes(29), {}, train::stop_on_interrupt{}, thrower{}), error);
  std::raise(SIGINT);
  CHECK(own_calls == 2);
  {
    std::optional<train::interruption> outer(std::in_place), inner(std::in_place);
    outer.reset();
    std::raise(SIGINT);
    CHECK(own_calls == 2);
    CHECK(inner->happened());
  }
  std::raise(SIGINT);
  CHECK(own_calls == 3);
  CHECK_FALSE(train::interruption().happened());
  std::signal(SIGINT, before);
}

TEST_CASE("a second interrupt ends the program; ignored interrupts stay ignored") {
  CHECK(signal_that_ends([] {
          std::signal(SIGINT, SIG_DFL);
          const train::interruption watch;
          std::raise(SIGINT);
        }) == 0);
  CHECK(signal_that_ends([] {
          std::signal(SIGINT, SIG_DFL);
          const train::interruption watch;
          std::raise(SIGINT);
          std::raise(SIGINT);
        }) == SIGINT);
  CHECK(signal_that_ends([] {
          std::signal(SIGINT, SIG_IGN);
          const train::interruption watch;
          std::raise(SIGINT);
          if (watch.happened()) std::raise(SIGKILL);
          std::raise(SIGINT);
        }) == 0);
}
