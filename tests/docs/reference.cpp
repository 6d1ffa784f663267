// Public names that no other example uses: docs/reference takes examples from here.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cella/data/dataset.hpp>
#include <cella/models/gpt.hpp>
#include <cella/models/resnet.hpp>
#include <cella/nn/losses.hpp>
#include <cella/nn/recurrent.hpp>
#include <cella/ops/arranging.hpp>
#include <cella/ops/fourier.hpp>
#include <cella/ops/numeric.hpp>
#include <cella/ops/resampling.hpp>
#include <cella/ops/segments.hpp>
#include <cella/ops/statistics.hpp>
#include <cella/optim/apply.hpp>
#include <cella/optim/frozen.hpp>
#include <cella/optim/kfac.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/train/callbacks.hpp>
#include <cella/train/input.hpp>
#include <cella/train/metrics.hpp>
#include <cella/train/slots.hpp>
#include <cella/transform/gradient.hpp>
#include <type_traits>
#include <vector>

#include "support/gradient_check.hpp"

using namespace cella;

namespace {

template <class Net>
graph traced(const tensor_type& sample) {
  Net net{};
  return trace(net, std::array{sample});
}
shape result_of(const graph& g) { return g.type(g.regions[0].outputs[0]).shape; }
/// How many numbers an optimizer changes.
std::int64_t weights_of(const graph& g) {
  std::int64_t all = 0;
  for (std::size_t i = 0; i < g.inputs.size(); ++i)
    if (g.inputs[i].role == input_role::parameter) all += g.type(g.input(int(i))).shape.size();
  return all;
}

/// Two blocks for images of few channels.
using small_stage = models::stage<models::basic_block<8, 16, 2>, models::basic_block<16, 16>, 1>;

/// Recurrent nets as functions of weights, which here are all alike.
struct by_hand {
  struct result {
    var of_rnn, of_gru, of_lstm;
  };
  constexpr result operator()(var x) const {
    const auto weights = [x](int gates) {
      const auto some = [x](const shape& s) { return constant(*x.b, 0.1, {x.element(), s}); };
      const int rows = gates * 5;
      return recurrent_weights{some({rows, 3}), some({rows, 5}), some({rows}), some({rows})};
    };
    const sequence_result plain = rnn(x, weights(1));
    const sequence_result gated = gru(x, weights(3));
    const sequence_result remembering = lstm(x, weights(4));
    return {plain.outputs, gated.hidden, remembering.hidden};
  }
};

/// A wrapper: the rule in it goes uphill, at half the learning rate.
struct half_ascent : optim::wrapped<optim::sgd> {
  constexpr void update(const optim::gradient_list& g) const {
    optim::pace slower = g.pace;
    slower.rate /= 2;
    optim::gradient_list up{g.b, {}, slower};
    for (const optim::parameter_gradient& p : g.all) up.all.push_back({p.parameter, -p.gradient});
    optim::update(rule, up);
  }
};
static_assert(optim::wrapper<half_ascent> && !optim::wrapper<optim::sgd>);
static_assert(optim::rule<optim::sgd> && !optim::rule<half_ascent>);
static_assert(optim::optimizer<half_ascent> && !optim::optimizer<double>);
static_assert(optim::reads_graph<optim::kfac>() && !optim::reads_graph<half_ascent>());

struct ascent_step {
  nn::dense<2, 1> net{};
  constexpr nn::dense<2, 1>& wrapped() { return net; }
  constexpr var operator()(var x) const {
    const var loss = sum(net(x));
    optim::apply(half_ascent{{optim::sgd{.momentum = 0.9}}}, loss);
    return loss;
  }
};

/// Value and derivatives of x^2 y.
struct with_partials {
  struct result {
    var value, by_x, by_y;
  };
  constexpr result operator()(var x, var y) const {
    const auto f = [](var a, var b) { return square(a) * b; };
    const valued_gradient<2> both = value_and_grad<2>(f)(x, y);
    return {both.value, both.gradient[0], both.gradient[1]};
  }
};

/// Remembers the largest loss.
struct worst_epoch {
  double loss = 0;

  void on_epoch_end(const train::fit_state& s) {
    const train::epoch_record& record = s.record;
    loss = std::max(loss, record["loss"]);
  }
  void state(train::state_visitor& v) { v("loss", loss); }
};
static_assert(train::stateful<worst_epoch> && !train::stateful<ascent_step>);

static_assert(metrics::metric<metrics::accuracy> && !metrics::metric<worst_epoch>);
/// A loss whose samples with the label -100 do not count.
constexpr cross_entropy_options ignoring{.ignored_label = some_label(-100)};
static_assert(ignoring.ignored_label && *ignoring.ignored_label == -100 && !some_label{});
static_assert(metrics::loss_metric<metrics::loss> && !metrics::loss_metric<metrics::accuracy>);

struct pair_of_samples {
  features<8> values;
  tokens<4> words;
};
static_assert(sample_spec<features<8>> && !sample_spec<pair_of_samples>);
static_assert(model_inputs<pair_of_samples> && !model_inputs<int>);

/// As much of a model as `early_stop` asks for: what it keeps of the best epoch.
struct one_weight {
  std::byte value{};
  std::vector<std::byte> snapshot() const { return {value}; }
};

data::tensor_dataset<float> countdown() {
  return data::tensor_dataset(data::column<float>({3, 2, 1}));
}

}  // namespace

TEST_CASE("a way past a residual block is a projection where the shape changes") {
  CHECK(std::is_same_v<models::shortcut<16, 16, 1>, models::identity>);
  CHECK(std::is_same_v<models::shortcut<16, 32, 2>, models::projection<16, 32, 2>>);
  CHECK(result_of(traced<small_stage>({dtype::f32, {4, 8, 32, 32}})) == shape{4, 16, 16, 16});
}

TEST_CASE("residual nets have as many weights as published") {
  const graph small = traced<models::resnet20<10>>({dtype::f32, {1, 3, 32, 32}});
  CHECK(weights_of(small) == 272'474);
  const graph large = traced<models::resnet50<1000>>({dtype::f32, {1, 3, 224, 224}});
  CHECK(weights_of(large) == 25'557'032);
  CHECK(result_of(large) == shape{1, 1000});
}

TEST_CASE("a block of a transformer keeps the shape") {
  using block = models::transformer_block<32, 4>;
  CHECK(result_of(traced<block>({dtype::f32, {2, 7, 32}})) == shape{2, 7, 32});
}

TEST_CASE("a recurrent cell is a function of weights, and parameters") {
  CHECK(std::is_same_v<nn::rnn<3, 5>, nn::recurrent<3, 5, 1, &cella::rnn>>);
  CHECK(result_of(traced<nn::rnn<3, 5>>({dtype::f32, {2, 7, 3}})) == shape{2, 7, 5});
  const graph g = traced<by_hand>({dtype::f32, {2, 7, 3}});
  const auto& results = g.regions[0].outputs;
  CHECK(g.type(results[0]).shape == shape{2, 7, 5});
  CHECK(g.type(results[1]).shape == shape{2, 5});
  CHECK(g.type(results[2]).shape == shape{2, 5});
}

TEST_CASE("losses of logits say what their labels are") {
  constexpr tensor_type logits{dtype::f32, {8, 10}};
  CHECK(nn::class_labels::target(logits) == tensor_type{dtype::i32, {8}});
  CHECK(nn::class_labels::classes(logits) == 10);
}

TEST_CASE("a wrapper changes the pace of a rule") {
  ascent_step cell;
  parameter_store store(cell.net, 1);
  const float before = store.values<float>("bias")[0];
  using P = program<ascent_step, true, dtype::f32, tensor<dtype::f32, 1, 2>>;
  executable<P> step(store);
  step.scalar(P::scalar("learning_rate"), 1);
  step(std::array{0.f, 0.f});
  // The gradient of the bias is 1.
  CHECK(store.values<float>("bias")[0] == doctest::Approx(before + 0.5f));
  CHECK(optim::takes(half_ascent{}, "bias"));
  CHECK(!optim::takes(optim::freeze<"bias">(optim::sgd{}), "bias"));
}

TEST_CASE("what a rule keeps is found by its name and the parameter's") {
  const slot_store slots(traced<ascent_step>({dtype::f32, {1, 2}}));
  const named_slot* const momentum = slots.find("momentum.bias");
  REQUIRE(momentum);
  CHECK(momentum->type == tensor_type{dtype::f32, {1}});
  CHECK(slots.entries().size() == 2);
}

TEST_CASE("a value comes with its gradients by several arguments") {
  using scalar = tensor<dtype::f32>;
  with_partials cell;
  parameter_store store(cell, 0);
  executable<inference_program<with_partials, scalar, scalar>> run(store);
  const std::array x{3.f}, y{5.f};
  run(x, y);
  CHECK(run.result<0>()[0] == 45);
  CHECK(run.result<1>()[0] == 30);
  CHECK(run.result<2>()[0] == 9);
}

TEST_CASE("a graph is made in constant evaluation, and can be made at run time") {
  using make = make_graph<nn::dense<3, 2>, false, dtype::f32, tensor<dtype::f32, 4, 3>>;
  CHECK(result_of(make{}().graph) == shape{4, 2});
}

TEST_CASE("what a callback remembers is written down and read back") {
  worst_epoch before, after;
  train::fit_state state;
  for (const double loss : {2., 4., 3.}) {
    state.record.set("loss", loss);
    before.on_epoch_end(state);
  }
  train::state_map kept;
  train::state_visitor writer(kept, "worst", false), reader(kept, "worst", true);
  before.state(writer);
  const train::state_tensor& number = kept.at("worst.loss");
  CHECK(number.type == tensor_type{dtype::f64, {1}});
  after.state(reader);
  CHECK(after.loss == 4);
}

TEST_CASE("a score whose name does not say so can be said to fall") {
  const std::vector<double> distances{3, 2, 2.5};
  for (const auto which : {train::better::lower, train::better::higher}) {
    train::early_stop stop{.monitor = "distance", .patience = 1, .which = which};
    one_weight m;
    train::fit_context<one_weight> s(m);
    for (const double d : distances) {
      if (s.stop) break;
      s.record.set("distance", d);
      stop.on_epoch_end(s);
      ++s.record.epoch;
    }
    CHECK(stop.best_epoch == (which == train::better::lower ? 1 : 0));
  }
}

TEST_CASE("functions of tensors that no other example calls") {
  using test::reals;
  test::eager_session s;
  const var x = s(test::f64({2, 3}, {1, 5, 2, 4, 0, 3}));
  const var turned = swap_axes(x, 0, 1);
  CHECK(turned.shape() == shape{3, 2});
  const var in_front = searchsorted(constant(x, {1.0, 2.0, 4.0}), x);
  CHECK(s.value(in_front).values == reals{0, 3, 1, 2, 0, 2});
  const var of_kinds = segment_sum(x, constant(x, {1, 0}), 2);
  CHECK(s.value(of_kinds).values == reals{4, 0, 3, 1, 5, 2});
  const var below = greater(x, 2), above = less_equal(x, 2), from = greater_equal(x, 2);
  CHECK(s.value(below).values == reals{0, 1, 0, 1, 0, 1});
  CHECK(s.value(above).values == reals{1, 0, 1, 0, 1, 0});
  CHECK(s.value(from).values == reals{0, 1, 1, 1, 0, 1});
  const var spectrum = fft2(x);
  const var back = ifftn(spectrum);
  const var same = all_close(real(back), x);
  CHECK(s.value(same).values == reals{1});
  const var half = rfftn(x, {0, 1});
  CHECK(half.shape() == shape{2, 2});
  const resize_form up{.mode = resize_mode::nearest, .nearest = nearest_rounding::ceil};
  const var larger = resize(x, {1}, {6}, up);
  CHECK(s.value(larger).values == reals{1, 5, 5, 2, 2, 2, 4, 0, 0, 3, 3, 3});
}

TEST_CASE("the largest score is the first of equals") {
  const std::vector<float> scores{0, 2, 5, 5};
  CHECK(metrics::argmax(std::span<const float>(scores)) == 2);
}

TEST_CASE("what is trained on is a loader, or a data set in an order of its own") {
  const auto samples = countdown();
  const auto batches = samples.batch(2);
  CHECK(data::batch_loader<decltype(batches)>);
  CHECK(data::sample_source<decltype(samples)>);
  CHECK(!data::batch_loader<decltype(samples)>);
  CHECK(data::has_stable_order(samples));
  CHECK(!data::has_stable_order(samples.shuffle(1)));
}

TEST_CASE("a sample is read by its position, column by column") {
  float value = 0;
  data::scratch work;
  const data::sample<float> out(data::hana::make_tuple(data::tensor_view<float>(&value, {})));
  data::read_sample(countdown(), {.index = 1}, out, work);
  int columns = 0;
  data::for_each_column<1>([&](auto i) {
    CHECK(out.column<i()>()[0] == 2);
    ++columns;
  });
  CHECK(columns == 1);
}
