#include <doctest/doctest.h>

#include <cella/models/lenet.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/train/step.hpp>
#include <cmath>

#include "support/counted_malloc.hpp"

using namespace cella;
using namespace cella::test;

namespace {

using training =
    training_step<models::lenet5, cross_entropy_loss, fixed<optim::sgd{.momentum = 0.9}>>;
template <int N>
using lenet_step =
    program<training, true, dtype::f32, tensor<dtype::f32, N, 1, 28, 28>, tensor<dtype::i32, N>>;

/// The losses and final weights of a few steps on made-up digits.
template <int N>
std::vector<float> trained(thread_pool* threads) {
  models::lenet5 net;
  parameter_store store(net, 5);
  executable<lenet_step<N>> step(store, threads);
  step.scalar(lenet_step<N>::scalar("learning_rate"), 0.05);
  std::vector<float> x(std::size_t{N} * 784);
  std::vector<std::int32_t> y(N);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = uniform<float>(3, i) * 2 - 1;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::int32_t(i * 7 % 10);
  std::vector<float> all;
  for (int i = 0; i < 5; ++i) {
    step(x, y);
    all.push_back(step.template result<0>()[0]);
  }
  for (const auto& e : store.entries()) {
    const auto* w = reinterpret_cast<const float*>(store.value(e).data);
    all.insert(all.end(), w, w + e.type.size());
  }
  return all;
}

}  // namespace

// The plan is a compile-time constant: its memory can be asserted by a program that embeds it.
static_assert(lenet_step<32>::plan.arena_bytes < 1 << 20);
static_assert(lenet_step<32>::plan.arena_bytes * 20 <= lenet_step<32>::plan.live_bytes * 21);
static_assert(lenet_step<32>::plan.arena_bytes < lenet_step<32>::plan.arena_bytes_without_reuse);

TEST_CASE("the loss of a program falls while it trains") {
  const auto r = trained<32>(nullptr);
  CHECK(r[4] < r[0]);
}

TEST_CASE("results do not depend on the number of threads, bit for bit") {
  const auto alone = trained<32>(nullptr);
  for (int n : {1, 2, 3}) {
    thread_pool pool(n);
    CHECK(trained<32>(&pool) == alone);
  }
}

/// Its products are packed, which takes scratch.
struct packing_net {
  nn::dense<64, 600> a{};
  nn::dense<600, 600> b{};
  constexpr var operator()(var x) const { return b(relu(a(x))); }
};
using small_net = nn::dense<3, 2>;

TEST_CASE("guests that come after an executable was built find room in its scratch") {
  using program = inference_program<packing_net, tensor<dtype::f32, 96, 64>>;
  thread_pool pool(1, 2);
  packing_net net;
  parameter_store store(net, 5);
  executable<program> run(store, &pool);
  CHECK(pool.capacity() == 3);
  const std::vector<float> x(96 * 64, 0.25f);
  run(x);
  const std::vector<float> alone(run.result<0>().begin(), run.result<0>().end());
  std::jthread first([&](std::stop_token stop) { pool.worker(stop); });
  std::jthread second([&](std::stop_token stop) { pool.worker(stop); });
  while (pool.size() < 3) std::this_thread::yield();
  for (int i = 0; i < 20; ++i) {
    run(x);
    REQUIRE(std::ranges::equal(run.result<0>(), alone));
  }
}

TEST_CASE("a step allocates nothing") {
  models::lenet5 net;
  parameter_store store(net, 5);
  thread_pool pool(2);
  executable<lenet_step<32>> step(store, &pool);
  step.scalar(lenet_step<32>::scalar("learning_rate"), 0);
  std::vector<float> x(32 * 784, 0.5f);
  std::vector<std::int32_t> y(32, 3);
  step(x, y);
  const long before = allocations;
  for (int i = 0; i < 10; ++i) step(x, y);
  CHECK(allocations == before);
#if defined(CELLA_COUNTS_MALLOC)
  // The counter counts: operator new ends in malloc.
  const auto p = std::make_unique<int>(1);
  CHECK(allocations > before);
#endif
}

TEST_CASE("a number that was never set is an error that names it and the call that sets it") {
  using step_program =
      program<training_step<small_net, squared_error_loss, fixed<optim::adam{}>>, true, dtype::f32,
              tensor<dtype::f32, 4, 3>, tensor<dtype::f32, 4, 2>>;
  small_net net;
  parameter_store store(net, 5);
  executable<step_program> step(store);
  const std::vector<float> x(12, 0.5f), y(8, 1.f);
  const float before = store.values<float>("weight")[0];
  step.scalar(step_program::scalar("learning_rate"), 0.1);
  CHECK_THROWS_WITH_AS(step(x, y),
                       "the number \"step\" of this program was never set; call "
                       "scalar(program::scalar(\"step\"), value) before each step",
                       error);
  CHECK(store.values<float>("weight")[0] == before);
  CHECK_THROWS_WITH_AS(step.scalar(step_program::scalar("step"), 0),
                       "the number \"step\" counts updates from 1, and was set to 0", error);
  step.scalar(step_program::scalar("step"), 1);
  step(x, y);
  CHECK(std::isfinite(store.values<float>("weight")[0]));
  CHECK(store.values<float>("weight")[0] != before);
  static_assert(step_program::scalar("momentum") == -1);
  CHECK_THROWS_AS(step.scalar(step_program::scalar("momentum"), 1), error);
}

TEST_CASE("the same parameters serve programs of several batch sizes") {
  models::lenet5 net;
  parameter_store store(net, 7);
  executable<inference_program<models::lenet5, tensor<dtype::f32, 1, 1, 28, 28>>> one(store);
  executable<inference_program<models::lenet5, tensor<dtype::f32, 20, 1, 28, 28>>> twenty(store);
  std::vector<float> x(20 * 784);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = uniform<float>(3, i);
  twenty(x);
  for (std::size_t k = 0; k < 20; ++k) {
    one(std::span(x).subspan(k * 784, 784));
    for (std::size_t c = 0; c < 10; ++c) {
      CHECK(double(one.result()[c]) ==
            doctest::Approx(double(twenty.result()[k * 10 + c])).epsilon(1e-5));
    }
  }
}

TEST_CASE("weights that are packed once are packed again when they change") {
  models::lenet5 net;
  parameter_store store(net, 7);
  executable<inference_program<models::lenet5, tensor<dtype::f32, 1, 1, 28, 28>>> one(store);
  std::vector<float> x(784, 0.25f);
  one(x);
  const float before = one.result()[0];
  for (float& w : net.conv2.weight.values()) w *= 2;
  store.touch();
  one(x);
  CHECK(one.result()[0] != before);
}

TEST_CASE("a program refuses the parameters of another model") {
  nn::dense<3, 2> other;
  parameter_store store(other, 1);
  using P = inference_program<models::lenet5, tensor<dtype::f32, 1, 1, 28, 28>>;
  CHECK_THROWS_WITH_AS(executable<P>{store},
                       "this program is of another model, or of another element type, than these "
                       "parameters of f32, of which the first is \"weight\"; a net inside of the "
                       "cell that was trained gets a store of its own by copy_part",
                       error);
}

TEST_CASE("a program can be made for any batch, with lanes left over") {
  const auto r = trained<17>(nullptr);
  CHECK(r[4] < r[0]);
}
