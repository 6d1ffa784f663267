// Recipes of training. docs/training.md quotes this file.
#include <doctest/doctest.h>

#include <array>
#include <cella/data/dataset.hpp>
#include <cella/models/mlp.hpp>
#include <cella/optim/accumulate.hpp>
#include <cella/optim/averaged.hpp>
#include <cella/optim/clip.hpp>
#include <cella/optim/frozen.hpp>
#include <cella/optim/parts.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/runtime/summary.hpp>
#include <cella/train/model.hpp>
#include <cella/train/progress.hpp>
#include <cmath>
#include <numbers>
#include <sstream>
#include <vector>

using namespace cella;

namespace {

// ---- two players

struct gan_step {
  models::mlp<2, 16, 2> g{};
  models::mlp<2, 16, 1> d{};
  struct losses {
    var d, g;
  };
  constexpr losses operator()(var noise, var real) {
    const var fake = d(g(noise));
    const var d_loss = mean(softplus(fake) + softplus(-d(real)));
    const var g_loss = mean(softplus(-fake));
    optim::apply(optim::adam{.beta1 = 0.5}, d_loss, "d.*");
    optim::apply(optim::adam{.beta1 = 0.5}, g_loss, "g.*");
    return {d_loss, g_loss};
  }
};
using points = tensor<dtype::f32, 64, 2>;
using gan = program<gan_step, true, dtype::f32, points, points>;

// ---- a target net

using q_net = models::mlp<2, 8, 1>;
/// One number per state against what the target net says of the next.
struct value_step {
  q_net q{};
  constexpr q_net& wrapped() { return q; }
  constexpr var operator()(var states, var goals) {
    const var loss = mean_squared_error(q(states), goals);
    optim::apply(optim::sgd{}, loss);
    return loss;
  }
};
using states = tensor<dtype::f32, 4, 2>;
using learning = program<value_step, true, dtype::f32, states, tensor<dtype::f32, 4, 1>>;
using asking = inference_program<q_net, states>;

// ---- wrapped rules

constexpr auto clipped = optim::clip_by_global_norm(1, optim::adam{});
constexpr auto by_part =
    optim::parts(optim::part<"*.bias">(optim::sgd{}),
                 optim::part<"rest.*">(optim::scaled_rate(0.1, optim::adamw{.weight_decay = 0.05})),
                 optim::rest(optim::adamw{.weight_decay = 0.05}));
constexpr auto large_batches = optim::accumulate<8>(clipped);
constexpr auto smooth = optim::averaged(0.999, optim::freeze<"rest.*.bias">(by_part));

template <auto Rule>
using regression = model<models::mlp<2, 8, 8, 1>, features<2>, squared_error_loss{}, Rule,
                         model_options{.batch = 16}>;

const std::vector<float> inputs = [] {
  std::vector<float> x(32);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(std::sin(double(i)));
  return x;
}();
const std::vector<float> targets = [] {
  std::vector<float> y(16);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = inputs[2 * i] - inputs[2 * i + 1];
  return y;
}();

// ---- a step within a step

/// First weights from which one step along the gradient of ten points of a wave leads near it
/// (MAML).  Finn et al. 2017
struct meta_step {
  nn::dense<1, 40> first{};
  nn::dense<40, 1> last{};

  constexpr var operator()(var x, var y, var new_x, var new_y) {
    const auto loss_of = [](const std::array<var, 4>& p, var a, var b) {
      return mean_squared_error(
          matmul(tanh(matmul(a, p[0], false, true) + p[1]), p[2], false, true) + p[3], b);
    };
    const std::array<var, 4> begin{first.weight, first.bias, last.weight, last.bias};
    const auto slope = gradients(loss_of(begin, x, y), begin);
    std::array<var, 4> adapted = begin;
    for (std::size_t k = 0; k < 4; ++k) adapted[k] = begin[k] - 0.05 * slope[k];
    const var loss = loss_of(adapted, new_x, new_y);
    optim::apply(optim::adam{}, loss);
    return loss;
  }
};
using ten = tensor<dtype::f32, 10, 1>;
using meta = program<meta_step, true, dtype::f32, ten, ten, ten, ten>;

}  // namespace

TEST_CASE("a net learns to learn waves from ten points") {
  meta_step cell;
  parameter_store store(cell, 1);
  executable<meta> step(store);
  generator random(3);
  std::array<float, 10> x, y, new_x, new_y;
  double first = 0, last = 0;
  for (int i = 1; i <= 3000; ++i) {
    const float height = random.uniform(0.5f, 2.f), shift = random.uniform(0.f, 3.f);
    for (std::size_t k = 0; k < 10; ++k) {
      x[k] = random.uniform(-2.f, 2.f), new_x[k] = random.uniform(-2.f, 2.f);
      y[k] = height * std::sin(x[k] + shift), new_y[k] = height * std::sin(new_x[k] + shift);
    }
    step.scalar(meta::scalar("learning_rate"), 0.003);
    step.scalar(meta::scalar("step"), i);
    step(x, y, new_x, new_y);
    if (i <= 20) first += double(step.result()[0]) / 20;
    if (i > 2800) last += double(step.result()[0]) / 200;
  }
  CHECK(last < 0.5 * first);
}

TEST_CASE("a generator's points come to where the real ones are") {
  gan_step cell;
  parameter_store store(cell, 1);
  executable<gan> step(store);
  std::array<float, 128> noise, real;
  generator random(7);
  for (int i = 1; i <= 400; ++i) {
    for (float& v : noise) v = random.normal();
    for (std::size_t k = 0; k < 64; ++k) {
      const double angle = 2 * std::numbers::pi * random.uniform(0.f, 1.f);
      real[2 * k] = 3 + float(std::cos(angle));
      real[2 * k + 1] = 3 + float(std::sin(angle));
    }
    step.scalar(gan::scalar("learning_rate"), 0.005);
    step.scalar(gan::scalar("step"), i);
    step(noise, real);
  }
  // The generator's points have come to the ring's centre, (3, 3).
  models::mlp<2, 16, 2> drawing;
  parameter_store drawn(drawing, 0);
  drawn.copy_part(store, "g");
  executable<inference_program<models::mlp<2, 16, 2>, points>> draw(drawn);
  draw(noise);
  double centre = 0;
  for (float v : draw.result()) centre += double(v) / 128;
  CHECK(centre == doctest::Approx(3).epsilon(0.3));
}

TEST_CASE("a target net follows the net that learns") {
  value_step cell;
  q_net target_cell;
  parameter_store store(cell.q, 1), target_store(target_cell, 2);
  target_store.copy_from(store);
  executable<learning> learn(store);
  executable<asking> target(target_store);
  const std::array<float, 8> now{0, 1, 1, 0, 1, 1, 0, 0};
  const double before = double(store.values<float>("layer.weight")[0]);
  for (int i = 0; i < 20; ++i) {
    target(now);
    std::array<float, 4> goals;
    for (std::size_t k = 0; k < 4; ++k) goals[k] = 1 + 0.5f * target.result()[k];
    learn.scalar(learning::scalar("learning_rate"), 0.1);
    learn(now, goals);
    target_store.lerp(store, 0.05);
  }
  const double learnt = double(store.values<float>("layer.weight")[0]);
  const double followed = double(target_store.values<float>("layer.weight")[0]);
  CHECK(learnt != before);
  CHECK(std::abs(followed - before) > 0);
  CHECK(std::abs(followed - before) < std::abs(learnt - before));
}

TEST_CASE("a model trains with wrapped rules, and is measured on its averages") {
  regression<large_batches> batches({.seed = 1});
  const float start = batches.parameters().values<float>("layer.weight")[0];
  for (int i = 0; i < 7; ++i) batches.train_step(inputs.data(), targets.data(), 16, 0.01);
  CHECK(batches.parameters().values<float>("layer.weight")[0] == start);
  batches.train_step(inputs.data(), targets.data(), 16, 0.01);
  CHECK(batches.parameters().values<float>("layer.weight")[0] != start);

  regression<smooth> m({.seed = 1});
  const double first = m.train_step(inputs.data(), targets.data(), 16, 0.01);
  double loss = first;
  for (int i = 0; i < 100; ++i) loss = m.train_step(inputs.data(), targets.data(), 16, 0.01);
  CHECK(loss < first);
  const float sharp = m.predict(inputs.data(), 1).data()[0];
  {
    const auto averages = m.use_averages();
    CHECK(m.predict(inputs.data(), 1).data()[0] != sharp);
  }
  CHECK(m.predict(inputs.data(), 1).data()[0] == sharp);
}

TEST_CASE("a long prediction shows how far it is") {
  regression<smooth> m({.seed = 1});
  const data::tensor_dataset samples(data::column<float>({16, 2}, inputs));
  std::ostringstream shown;
  std::vector<float> answers;
  {
    const auto batches = samples.batch(4);
    train::progress bar(1, batches.batches(), shown);
    bar.begin_epoch();
    for (auto& b : batches.epoch(0)) {
      const auto y = m.predict(b.column<0>());
      answers.insert(answers.end(), y.begin(), y.end());
      bar.step();
    }
    bar.end_epoch();
  }
  CHECK(shown.str().find("4/4") != std::string::npos);
  const auto whole = m.predict(inputs);
  REQUIRE(answers.size() == whole.size());
  for (std::size_t i = 0; i < answers.size(); ++i)
    CHECK(answers[i] == doctest::Approx(whole[i]).epsilon(1e-5));
}

TEST_CASE("a model is shown as a table of its cells") {
  const regression<smooth> m({.seed = 1});
  std::ostringstream shown;
  summarize(shown, m);
  CHECK(shown.str().find("f32[16,8]") != std::string::npos);
  CHECK(shown.str().find(" 105 ") != std::string::npos);
}

TEST_CASE("values are read and written by name") {
  q_net cell;
  parameter_store store(cell, 1);
  const std::span<const float> weights = store.values<float>("layer.weight");
  for (float& w : store.mutable_values<float>("layer.bias")) w = 0;
  CHECK(weights.size() == 16);
  CHECK(cell.layer.bias.values()[3] == 0);
}
