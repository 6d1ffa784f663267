// What the golden values of vocabulary.cpp do not show: caches, masks, positions, faults, and that
// the compiler traces every cell.
#include <cella/nn/activations.hpp>
#include <cella/nn/classification_losses.hpp>
#include <cella/nn/convolutions.hpp>
#include <cella/nn/ctc_loss.hpp>
#include <cella/nn/embedding_bag.hpp>
#include <cella/nn/embedding_losses.hpp>
#include <cella/nn/functions.hpp>
#include <cella/nn/norms.hpp>
#include <cella/nn/pooling.hpp>
#include <cella/nn/recurrent_net.hpp>
#include <cella/nn/regression_losses.hpp>
#include <cella/nn/transformer.hpp>
#include <cella/runtime/parameters.hpp>
#include <cella/transform/gradient.hpp>

#include "support/compare.hpp"
#include "support/traced.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// A cell with the values that a seed gives it, in eager mode.
template <class Cell>
void bind_values(eager_session& s, Cell& cell, std::uint64_t seed) {
  parameter_store store(cell, seed, dtype::f64);
  for_each_parameter(cell, [&](std::string_view path, parameter_base& p) {
    const tensor_ref r = store.value(*store.find(std::string(path)));
    valued_tensor t{r.type, {}};
    for (std::int64_t i = 0; i < r.type.size(); ++i) t.values.push_back(read_element(r, i));
    s.b.cells.bind(&p, s(t).id);
    p.traced_by = &s.b;
  });
}
valued_tensor some(const shape& s, std::uint64_t seed) {
  generator random(seed);
  valued_tensor t{{dtype::f64, s}, {}};
  for (std::int64_t i = 0; i < t.type.size(); ++i) t.values.push_back(random.uniform() * 2 - 1);
  return t;
}

/// Every cell of images in one net.
struct image_net {
  nn::sequential<nn::conv2d<3, 4, 3>, nn::relu, nn::max_pool, nn::depthwise_conv2d<4, 3>,
                 nn::group_norm<4, 2>, nn::gelu>
      first{};
  nn::separable_conv2d<4, 4, 1> second{};
  nn::conv2d_transpose<4, 4, 2> third{};
  nn::instance_norm<4> norm{};
  nn::local_response_norm response{.size = 3};
  nn::prelu<4> slopes{};
  nn::average_pool halved{};
  nn::adaptive_average_pool means{.height = 2};  // and the width
  nn::adaptive_max_pool maxima{.height = 2, .width = 2};
  nn::sequential<nn::flatten, nn::weight_norm_dense<16, 8>, nn::mish, nn::spectral_norm_dense<8, 4>,
                 nn::silu, nn::selu, nn::softplus, nn::tanh, nn::softmax>
      head{};
  constexpr var operator()(var x) const {
    x = slopes(response(norm(third(second(first(x))))));
    return head(means(x) +
                maxima(x) * mean(nn::global_average_pool{}(halved(x)) + nn::global_max_pool{}(x)));
  }
};
/// And of sequences.
struct sequence_net {
  nn::embedding_bag<5, 8> bag{.mode = bag_mode::sum};
  nn::embedding<5, 8> word{};
  nn::learned_position<6, 8> place{};
  nn::sinusoidal_position wave{};
  nn::conv1d<6, 6, 3> filter{.padding = 1};
  nn::encoder_block<8, 2> encoder{};
  nn::decoder_block<8, 2> decoder{.options = {.dropout = 0.1}};
  nn::attention<8, 4, 2> rotated{.causal = true, .window = 3, .rotary_base = 1e4};
  nn::cross_attention<8, 2, 4> other{};
  nn::rms_norm<8> norm{};
  nn::geglu<8, 6> gated{};
  nn::reglu<8, 6> gated_too{};
  nn::lstm_net<8, 4, recurrent_form{.layers = 2, .bidirectional = true}> memory{.dropout = 0.2};
  nn::activation<&cella::softsign> bent{};
  nn::swiglu<8, 6> gated_first{};
  nn::gated_feed_forward<8, 6, &cella::tanh> gated_last{};
  nn::feed_forward<8, 6> wide{};
  nn::rnn_net<8, 8, recurrent_form{.bidirectional = false}> short_memory{};
  nn::recurrent_net<cella::detail::gru_kind, 8, 8, one_layer> longer_memory{};
  nn::decoder_block<8, 2> last{.options = nn::block_options{.norm_first = false}};
  nn::sequential<nn::relu6, nn::gelu_tanh, nn::sigmoid, nn::softsign, nn::log_sigmoid> curves{};
  nn::sequential<nn::hard_sigmoid, nn::hard_swish, nn::leaky_relu, nn::elu> lines{};
  constexpr var operator()(var words, var lengths) const {
    var x = filter(wave(place(word(words)))) + expand_dims(bag(words), 1);
    x = encoder(x, padding_mask(lengths, 6));
    x = decoder(x, encoder(x), padding_mask(lengths, 6));
    x = gated_too(gated(norm(rotated(x))));
    x = gated_last(gated_first(wide(x) + sinusoidal_positions(x, 6, 8)));
    x = lines(curves(longer_memory(short_memory(x).outputs).outputs));
    x = last(x, x);
    x = x + other(x, glu(x));
    return bent(memory(x, lengths).outputs);
  }
};
/// Losses as `model` calls them.
struct losses {
  constexpr var operator()(var p, var t, var labels) const {
    const var numbers =
        nn::l1_loss{}(p, t) + nn::huber_loss{.delta = 2}(p, t) + nn::smooth_l1_loss{}(p, t) +
        nn::log_cosh_loss{}(p, t) + nn::quantile_loss{.q = 0.9}(p, t) +
        nn::poisson_nll_loss{}(p, t) + nn::hinge_loss{}(p, t) + nn::sigmoid_cross_entropy{}(p, t) +
        nn::focal_loss{}(p, t) + nn::dice_loss{}(p, t) + nn::binary_cross_entropy{}(sigmoid(p), t);
    const var counts = poisson_nll_loss(p, t, poisson_options{.full = true});
    return numbers + counts + nn::cross_entropy{{.label_smoothing = 0.1}}(p, labels) +
           nn::multi_margin_loss{}(p, labels);
  }
};

/// Letters of sounds: the blank is the last class.
struct spelling_loss {
  constexpr var operator()(var sounds, var letters, var lengths) const {
    const ctc_options options{.blank = 3};
    return ctc_loss(log_softmax(sounds, 2), letters, lengths, lengths, options);
  }
};

template <class Cell, std::size_t N>
consteval shape traced_shape(const std::array<tensor_type, N>& arguments, bool training) {
  Cell cell{};
  builder b;
  b.training = training;
  trace_into(b, cell, arguments);
  return b.failed() ? shape{-1} : b.g.type(b.g.regions[0].outputs[0]).shape;
}

/// The weighted sum of what a net makes, and its gradients by all parameters.
template <class Net>
struct with_gradients {
  Net net{};
  constexpr list<var> operator()(auto... x) const {
    const var y = net(x...);
    const var weights = sin(1 + iota(*y.b, {y.element(), {std::int32_t(y.shape().size())}}, 0));
    const var loss = sum(reshape(y, weights.shape()) * weights);
    list<var> all{loss};
    for (const var& g : gradients(loss, parameters_of(loss))) all.push_back(g);
    return all;
  }
};
/// Changes each parameter of a net along a direction, and compares the slope with the gradient.
template <class Net, std::size_t N>
void check_parameter_gradients(const std::array<valued_tensor, N>& arguments) {
  with_gradients<Net> cell;
  std::array<tensor_type, N> types;
  for (std::size_t i = 0; i < N; ++i) types[i] = arguments[i].type;
  const parameter_store store(cell, 11, dtype::f64);
  const graph g = trace(cell, types, {false, dtype::f64});
  std::vector<valued_tensor> inputs;
  std::vector<std::size_t> trained;
  for (const input_info& in : g.inputs) {
    if (in.role == input_role::parameter) trained.push_back(inputs.size());
    inputs.push_back(owned_by_cell(in.role)
                         ? read(store.value(*store.find(std::string(g.view(in.name)))))
                         : arguments[std::size_t(in.index)]);
  }
  const auto results = run_graph(g, inputs);
  REQUIRE(results.size() == trained.size() + 1);
  REQUIRE(trained.size() > 10);
  for (std::size_t k = 0; k < trained.size(); ++k) {
    CAPTURE(g.view(g.inputs[trained[k]].name));
    valued_tensor& p = inputs[trained[k]];
    const valued_tensor before = p, direction = some(p.type.shape, k);
    constexpr double step = 1e-6;
    double loss[2], slope = 0;
    for (int side = 0; side < 2; ++side) {
      for (std::size_t i = 0; i < p.values.size(); ++i)
        p.values[i] = before.values[i] + (side ? -step : step) * direction.values[i];
      loss[side] = run_graph(g, inputs)[0].values[0];
    }
    p = before;
    for (std::size_t i = 0; i < p.values.size(); ++i)
      slope += results[k + 1].values[i] * direction.values[i];
    CHECK(relative_error(slope, (loss[0] - loss[1]) / (2 * step)) < 1e-6);
  }
}

using types = std::array<tensor_type, 1>;
static_assert(traced_shape<image_net>(types{{{dtype::f32, {2, 3, 12, 12}}}}, true) == shape{2, 4});
static_assert(traced_shape<sequence_net>(std::array{tensor_type{dtype::i32, {2, 6}},
                                                    tensor_type{dtype::i32, {2}}},
                                         true) == shape{2, 6, 8});
static_assert(traced_shape<losses>(std::array{tensor_type{dtype::f32, {4, 3}},
                                              tensor_type{dtype::f32, {4, 3}},
                                              tensor_type{dtype::i32, {4}}},
                                   false) == shape{});
static_assert(traced_shape<spelling_loss>(std::array{tensor_type{dtype::f32, {5, 2, 4}},
                                                     tensor_type{dtype::i32, {2, 3}},
                                                     tensor_type{dtype::i32, {2}}},
                                          false) == shape{});

}  // namespace

TEST_CASE("the gradients of all layers by their parameters are slopes") {
  check_parameter_gradients<image_net>(std::array{some({2, 3, 12, 12}, 1)});
  check_parameter_gradients<sequence_net>(
      std::array{valued_tensor{{dtype::i32, {2, 6}}, {0, 1, 2, 3, 4, 1, 4, 3, 0, 0, 2, 1}},
                 valued_tensor{{dtype::i32, {2}}, {6, 4}}});
}

TEST_CASE("words that are written one by one see what the whole sequence sees") {
  const auto check = [](auto cell) {
    eager_session s;
    bind_values(s, cell, 3);
    const var x = s(some({2, 6, 8}, 5));
    const var whole = cell(x);
    const int width = cell.key_width;
    key_value_cache cache{s(f64({2, 6, width}, reals(std::size_t(12 * width), 0))), {}};
    cache.values = cache.keys;
    // Two places at first, then one at a time; the place is known at run time only.
    for (int at = 0; at < 6;) {
      const int count = at ? 1 : 2;
      const var place = s(i64({}, {double(at)}));
      const auto r = cell.step(slice(x, 1, at, at + count), cache, place);
      check_close(s.value(r.value).values, s.value(slice(whole, 1, at, at + count)).values, 1e-12);
      cache = r.cache;
      at += count;
    }
  };
  check(nn::attention<8, 2>{.causal = true});
  check(nn::attention<8, 4, 2>{.causal = true, .rotary_base = 1e4});
  check(nn::attention<8, 4, 1>{.causal = true, .window = 3});
}

TEST_CASE("rows of a cache are replaced from a place on, up to its end") {
  const auto y = eval([](var cache, var rows, var first) { return cache_rows(cache, rows, first); },
                      f64({1, 4, 1}, {1, 2, 3, 4}), f64({1, 2, 1}, {8, 9}), i64({}, {3}));
  CHECK(y.values == reals{1, 2, 3, 8});
}

TEST_CASE("masks tell which keys a query sees") {
  const auto x = f64({}, {0});
  CHECK(eval([](var v) { return causal_mask(v, 2, 3, 1); }, x).values == reals{1, 1, 0, 1, 1, 1});
  CHECK(eval([](var v) { return sliding_window_mask(v, 3, 3, 2); }, x).values ==
        reals{1, 0, 0, 1, 1, 0, 0, 1, 1});
  CHECK(eval([](var n) { return padding_mask(n, 3); }, i64({2}, {1, 3})).values ==
        reals{1, 0, 0, 1, 1, 1});
}

TEST_CASE("rotated products depend on the distance of their places only") {
  const auto product = [](var q, var k, int at) {
    return sum(rotary(q, 1e4, rotary_pairs::halves, at) *
               rotary(k, 1e4, rotary_pairs::halves, at + 3));
  };
  const auto q = some({1, 6}, 1), k = some({1, 6}, 2);
  const auto near = eval([&](var a, var b) { return product(a, b, 0); }, q, k);
  const auto far = eval([&](var a, var b) { return product(a, b, 50); }, q, k);
  check_close(far.values, near.values, 1e-12);
}

TEST_CASE("biases by distance have the slopes of the paper") {
  const auto y = eval([](var v) { return alibi_bias(v, 8, 1, 3); }, f64({}, {0})).values;
  REQUIRE(y.size() == 24);
  for (std::size_t h = 0; h < 8; ++h) {
    CHECK(y[3 * h] == doctest::Approx(-2 * std::pow(2.0, -double(h + 1))));
    CHECK(y[3 * h + 1] == doctest::Approx(-std::pow(2.0, -double(h + 1))));
    CHECK(y[3 * h + 2] == 0);
  }
}

TEST_CASE("power iteration finds the largest singular value") {
  // Rotations of diag(3, 1): the normalized weight has 1 and 1/3.
  const double c = std::cos(0.4), s = std::sin(0.4);
  const auto w = f64({2, 2}, {3 * c, -s, 3 * s, c});
  const auto y =
      eval([](var v, var u) { return spectral_norm(v, u, u, 60).value; }, w, f64({2}, {0.6, 0.8}));
  check_close(y.values, reals{c, -s / 3, s, c / 3}, 1e-12);
}

TEST_CASE("what does not fit is refused in one sentence") {
  const tensor_type x{dtype::f64, {2, 3, 5}}, v{dtype::f64, {4}}, y{dtype::i32, {2}};
  CHECK(fault([](const vars& t) { return grouped_query_attention(t[0], t[0], t[0], {.heads = 2}); },
              {x}) ==
        "grouped_query_attention: queries [...,T,2 D], keys [...,S,2 D] and values "
        "[...,S,2 E] are needed: x0 is [2,3,5], x0 is [2,3,5], x0 is [2,3,5]");
  CHECK(fault([](const vars& t) { return weight_norm(t[0], t[1]); }, {x, v}) ==
        "weight_norm: needs weights [Out,...] and norms [Out]: x0 is [2,3,5], x1 is [4]");
  CHECK(
      fault([](const vars& t) { return rotary(t[0]); }, {x}) ==
      "rotary: needs x [...,T,D] with an even D and places [T] of its type: x0 is f64[2,3,5], add "
      "result is f64[3]");
  CHECK(fault(
            [](const vars& t) {
              return nn::adaptive_max_pool{2, 2}(t[0]);
            },
            {x}) ==
        "adaptive_max_pool: needs images [N,C,H,W] and positive extents: x0 is [2,3,5], asked for "
        "[2,2]");
  CHECK(fault([](const vars& t) { return multi_margin_loss(t[0], t[1]); }, {v, y}) ==
        "multi_margin_loss: needs logits [N,C] and integer labels [N]: x0 is f64[4], x1 is i32[2]");
  CHECK(fault([](const vars& t) { return ctc_loss(t[0], t[1], t[1], t[1]); }, {x, y}) ==
        "ctc_loss: needs log-probabilities [T,N,C], labels [N,S] and two lengths [N], integers: x0 "
        "is f64[2,3,5], x1 is i32[2], x1 is i32[2], x1 is i32[2]");
  CHECK(fault([](const vars& t) { return nn::lstm_net<4, 2>{}(t[0]); }, {x}) ==
        "recurrent_net: needs sequences [samples, steps, 4]: x0 is [2,3,5]");
}
