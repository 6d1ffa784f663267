#include <doctest/doctest.h>

#include <cella/nn/recurrent.hpp>
#include <cella/ops/pooling.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "../train/digits.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr model_options small{.batch = 8};
constexpr model_options without_programs{.batch = 8, .compiled = false};
template <class Net>
using trained = model<Net, features<6>, cross_entropy_loss{}, optim::sgd{.momentum = 0.9}, small>;

std::vector<float> weights(const parameter_store& store) {
  std::vector<float> all;
  for (const auto& e : store.entries()) {
    const auto* p = reinterpret_cast<const float*>(store.value(e).data);
    all.insert(all.end(), p, p + e.type.size());
  }
  return all;
}
void check_near(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a[i] - b[i]) < 1e-5f);
}

/// An elementwise operation of a user: the run-time tier has no opcode for it.
struct bump_op : elementwise<bump_op> {
  static constexpr std::string_view name = "bump";
  static constexpr std::string_view formula = "y = x + x^2";
  static constexpr auto apply(auto x) { return x + x * x; }
  static constexpr var partial(node_ref n, int) { return 1 + 2 * n.operand(0); }
};
struct net_of_the_user {
  nn::dense<6, 3> layer{};
  constexpr var operator()(operand x) const {
    const var y = layer(x.in(*x.owner()));
    return emit<bump_op>({}, x.at(), y);
  }
};

/// Reads the six numbers of a sample as three pairs, one after the other.
struct pair_reader {
  nn::lstm<2, 24> memory{};
  nn::dense<24, 3> last{};
  constexpr var operator()(var x) const {
    return last(memory(reshape(x, {x.extent(0), 3, 2})).hidden);
  }
};

/// Three channels become blocks of them, which are convolved, normalized and pooled there.
struct image_net {
  nn::conv2d<3, 32, 3> stem{.padding = 1};
  nn::conv2d<32, 32, 3, false> conv{.padding = 1};
  nn::batch_norm<32> norm{};
  nn::dense<32, 2> last{};
  constexpr var operator()(var x) const {
    x = max_pool(tanh(stem(x)), 2);
    x = tanh(norm(conv(x)) + x);
    return last(mean(x, {2, 3}));
  }
};
template <model_options Options>
using images =
    model<image_net, image<3, 8, 8>, cross_entropy_loss{}, optim::sgd{.momentum = 0.9}, Options>;
/// Images of noise and stripes, which go down or across.
data::tensor_dataset<float, std::int32_t> striped_images(int n) {
  std::vector<float> x;
  std::vector<std::int32_t> y;
  for (int i = 0; i < n; ++i) {
    y.push_back(i * 5 % 7 % 2);
    for (int k = 0; k < 3 * 64; ++k) {
      const int at = y.back() ? k % 8 : k / 8 % 8;
      x.push_back(uniform<float>(11, std::uint64_t(i * 192 + k)) + (at % 2 ? 0.5f : -0.5f));
    }
  }
  return data::tensor_dataset(data::column<float>({n, 3, 8, 8}, x), data::column<std::int32_t>(y));
}

}  // namespace

TEST_CASE("a smaller last batch is planned at run time and trains as in eager mode") {
  REQUIRE(has_compiled_kernels);
  const auto data = three_classes(29).shuffle(3);  // 8 + 8 + 8 + 5
  for (int threads : {1, 3}) {
    CAPTURE(threads);
    trained<small_net> planned({.seed = 4, .threads = threads});
    trained<small_net> eager({.seed = 4, .mode = execution::eager});
    const auto before = weights(planned.parameters());
    const auto a = planned.fit(data, {.epochs = 3, .learning_rate = 0.05}, metrics::accuracy{});
    const auto b = eager.fit(data, {.epochs = 3, .learning_rate = 0.05}, metrics::accuracy{});
    for (std::size_t e = 0; e < 3; ++e) {
      CHECK(a[e]["loss"] == doctest::Approx(b[e]["loss"]).epsilon(1e-5));
      CHECK(a[e]["accuracy"] == doctest::Approx(b[e]["accuracy"]));
    }
    check_near(weights(planned.parameters()), weights(eager.parameters()));
    CHECK(weights(planned.parameters()) != before);
  }
}

TEST_CASE("a batch with an operation of the user's own is interpreted") {
  const auto data = three_classes(13);
  trained<net_of_the_user> planned({.seed = 4});
  trained<net_of_the_user> eager({.seed = 4, .mode = execution::eager});
  planned.fit(data, {.epochs = 2, .learning_rate = 0.05});
  eager.fit(data, {.epochs = 2, .learning_rate = 0.05});
  check_near(weights(planned.parameters()), weights(eager.parameters()));
}

TEST_CASE("a model without programs is planned at run time, and is the model that has them") {
  const auto data = three_classes(29).shuffle(3);
  const auto asked = three_classes(21);
  std::vector<float> samples;
  for (std::uint64_t i = 0; i < 21 * 6; ++i) samples.push_back(uniform<float>(8, i));
  using developed = model<small_net, features<6>, cross_entropy_loss{}, optim::sgd{.momentum = 0.9},
                          without_programs>;
  for (int threads : {1, 3}) {
    CAPTURE(threads);
    trained<small_net> compiled({.seed = 4, .threads = threads});
    developed loaded({.seed = 4, .threads = threads});
    CHECK(loaded.mode() == execution::runtime);
    const auto a = compiled.fit(data, {.epochs = 3, .learning_rate = 0.05}, metrics::accuracy{});
    const auto b = loaded.fit(data, {.epochs = 3, .learning_rate = 0.05}, metrics::accuracy{});
    for (std::size_t e = 0; e < 3; ++e) {
      CHECK(a[e]["loss"] == doctest::Approx(b[e]["loss"]).epsilon(1e-5));
      CHECK(a[e]["accuracy"] == doctest::Approx(b[e]["accuracy"]));
    }
    check_near(weights(compiled.parameters()), weights(loaded.parameters()));
    CHECK(compiled.evaluate(asked)["loss"] ==
          doctest::Approx(loaded.evaluate(asked)["loss"]).epsilon(1e-5));

    // 21 samples in batches of 8, by the model and by a predictor.
    const auto expected = compiled.predict(samples.data(), 21);
    const auto predicted = loaded.predict(samples.data(), 21);
    auto of_predictor = loaded.predictor();
    const auto by_predictor = of_predictor.predict(samples.data(), 21);
    REQUIRE(predicted.size() == 21 * 3);
    for (std::size_t i = 0; i < 21 * 3; ++i) {
      CHECK(predicted.data()[i] == doctest::Approx(expected.data()[i]).epsilon(1e-4));
      CHECK(by_predictor.data()[i] == predicted.data()[i]);
    }
  }
}

TEST_CASE("images in blocks: the same losses and weights from programs and from plans") {
  const auto data = striped_images(29).shuffle(3);  // 8 + 8 + 8 + 5
  for (int threads : {1, 3}) {
    CAPTURE(threads);
    images<small> compiled({.seed = 4, .threads = threads});
    images<without_programs> loaded({.seed = 4, .threads = threads});
    const auto a = compiled.fit(data, {.epochs = 3, .learning_rate = 0.05});
    const auto b = loaded.fit(data, {.epochs = 3, .learning_rate = 0.05});
    for (std::size_t e = 0; e < 3; ++e)
      CHECK(a[e]["loss"] == doctest::Approx(b[e]["loss"]).epsilon(1e-4));
    CHECK(a[2]["loss"] < a[0]["loss"]);
    const auto of_compiled = weights(compiled.parameters());
    const auto of_loaded = weights(loaded.parameters());
    REQUIRE(of_compiled.size() == of_loaded.size());
    for (std::size_t i = 0; i < of_loaded.size(); ++i)
      CHECK(std::abs(of_compiled[i] - of_loaded[i]) < 1e-4f);
    // What is packed for inference is packed again when training has gone on.
    for (int round = 0; round < 2; ++round) {
      CHECK(compiled.evaluate(data)["loss"] ==
            doctest::Approx(loaded.evaluate(data)["loss"]).epsilon(1e-4));
      compiled.fit(data, {.epochs = 1, .learning_rate = 0.05});
      loaded.fit(data, {.epochs = 1, .learning_rate = 0.05});
    }
  }
}

TEST_CASE(
    "a recurrent net trains the same in programs, plans and eager mode, with ragged batches") {
  const auto data = three_classes(29).shuffle(3);  // 8 + 8 + 8 + 5
  for (int threads : {1, 3}) {
    CAPTURE(threads);
    trained<pair_reader> compiled({.seed = 4, .threads = threads});
    trained<pair_reader> planned({.seed = 4, .mode = execution::runtime, .threads = threads});
    trained<pair_reader> eager({.seed = 4, .mode = execution::eager});
    const auto before = weights(planned.parameters());
    for (auto* m : {&compiled, &planned, &eager})
      m->fit(data, {.epochs = 3, .learning_rate = 0.05});
    check_near(weights(compiled.parameters()), weights(eager.parameters()));
    check_near(weights(planned.parameters()), weights(eager.parameters()));
    CHECK(weights(planned.parameters()) != before);
    CHECK(planned.evaluate(data)["loss"] ==
          doctest::Approx(eager.evaluate(data)["loss"]).epsilon(1e-5));
  }
}

TEST_CASE("one model goes from its programs to plans and back on the same state") {
  const auto data = three_classes(16);
  trained<small_net> turns({.seed = 4}), compiled({.seed = 4});
  for (execution m : {execution::graph, execution::runtime, execution::eager, execution::graph}) {
    turns.mode(m);
    turns.fit(data, {.epochs = 1, .learning_rate = 0.05});
  }
  for (int epoch = 0; epoch < 4; ++epoch) compiled.fit(data, {.epochs = 1, .learning_rate = 0.05});
  check_near(weights(turns.parameters()), weights(compiled.parameters()));
}
