#include <doctest/doctest.h>

#include <cella/models/gpt.hpp>
#include <cella/nn/losses.hpp>
#include <cella/train/step.hpp>
#include <random>

#include "support/step_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {

// 40 words and 20 places: vectors, tiles and rows of the loss have ragged ends.
constexpr int vocabulary = 40, width = 24, heads = 2, layers = 2, places = 20, samples = 3;
template <int Layers>
using net_of = models::gpt<vocabulary, width, heads, Layers, places>;
using net = net_of<layers>;
template <dtype Element, int Layers = layers>
using training =
    program<training_step<net_of<Layers>, nn::token_cross_entropy, fixed<optim::adam{}>>, true,
            Element, tensor<dtype::i32, samples, places>, tensor<dtype::i32, samples * places>>;

std::vector<double> integers_below(int limit, int count) {
  std::mt19937 random(3);
  std::vector<double> v;
  for (int i = 0; i < count; ++i) v.push_back(double(int(random() % unsigned(limit))));
  return v;
}

}  // namespace

TEST_CASE_TEMPLATE_DEFINE("each kernel of a GPT's training step equals the interpreter", P,
                          kernels) {
  // Adam divides by the root of its own square a gradient that is rounding errors only, that of the
  // keys' bias: in f32 that update is as good as random.
  check_steps<P>(
      {integers_below(vocabulary, samples * places), integers_below(vocabulary, samples * places)},
      {1e-3, 2}, P::element_type == dtype::f32 ? 5e-4 : 1e-11, 4);
}
TEST_CASE_TEMPLATE_INVOKE(kernels, training<dtype::f32>, training<dtype::f64, 1>);

TEST_CASE("a GPT's training step has one kernel for attention and one for its gradient per layer") {
  int attention = 0, gradient = 0;
  for (const plan_step& s : training<dtype::f32>::plan.steps) {
    attention += s.kind == step_kind::attention;
    gradient += s.kind == step_kind::attention_gradient;
    const auto name = training<dtype::f32>::graph.nodes[std::size_t(s.anchor)].op->name;
    CAPTURE(name);
    CHECK(s.kind != step_kind::generic);
  }
  CHECK(attention == layers);
  CHECK(gradient == layers);
}

TEST_CASE("each kernel of a GPT's inference equals the interpreter, its weights packed once") {
  using small = models::gpt<100, 128, 2, 1, 20>;
  using P = inference_program<small, tensor<dtype::i32, 2, 20>>;
  small n;
  parameter_store store(n, 4);
  check_steps<P>({integers_below(100, 40)}, {}, 2e-5, 4);
  int packed = 0;
  for (const plan_step& s : P::plan.steps)
    packed += s.kind == step_kind::product && s.in[3].valid();
  CHECK(packed == 5);

  // New weights are packed again.
  executable<P> run(store);
  std::vector<std::int32_t> x(40, 7);
  run(x);
  const std::vector<float> before(run.result<0>().begin(), run.result<0>().end());
  const named_parameter* head = store.find("head.weight");
  REQUIRE(head);
  for (std::int64_t i = 0; i < head->type.size(); ++i)
    reinterpret_cast<float*>(store.value(*head).data)[i] *= 2;
  store.touch();
  run(x);
  for (std::size_t i = 0; i < before.size(); ++i)
    CHECK(run.result<0>()[i] == doctest::Approx(2 * before[i]));
}

TEST_CASE("a GPT's training does not depend on the number of threads, bit for bit") {
  using P = training<dtype::f32>;
  std::vector<std::int32_t> x, y;
  for (double v : integers_below(vocabulary, samples * places)) x.push_back(std::int32_t(v));
  y.assign(x.rbegin(), x.rend());
  std::vector<float> losses, weights;
  for (int threads : {1, 2, 3}) {
    net n;
    parameter_store store(n, 4);
    thread_pool pool(threads);
    executable<P> step(store, threads > 1 ? &pool : nullptr);
    step.scalar(P::scalar("learning_rate"), 1e-2);
    std::vector<float> loss;
    for (int i = 1; i <= 3; ++i) {
      step.scalar(P::scalar("step"), i);
      step(x, y);
      loss.push_back(step.result<0>()[0]);
    }
    const named_parameter* head = store.find("head.weight");
    REQUIRE(head);
    const float* const first = reinterpret_cast<const float*>(store.value(*head).data);
    const std::vector<float> final(first, first + head->type.size());
    if (threads == 1) {
      losses = loss;
      weights = final;
      CHECK(loss[2] < loss[0]);
    }
    CHECK(loss == losses);
    CHECK(final == weights);
  }
}
