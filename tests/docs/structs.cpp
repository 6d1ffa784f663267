// Models with several inputs and outputs. docs/training.md quotes this file.
#include <doctest/doctest.h>

#include <algorithm>
#include <cella/data/dataset.hpp>
#include <cella/models/mlp.hpp>
#include <cella/nn/attention.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/ops/loss.hpp>
#include <cella/ops/trigonometry.hpp>
#include <cella/train/model.hpp>
#include <cmath>
#include <numbers>
#include <vector>

using namespace cella;

// ---- an encoder with a padding mask

struct sentence {
  tokens<8> words;
  features<8> mask;  // 1: a word, 0: padding
};
struct encoder {
  nn::embedding<10, 16> embed{};
  nn::dense<16, 16> query{}, key{}, value{};
  nn::dense<16, 2> out{};

  constexpr var operator()(const sentence& s) const {
    const var x = embed(s.words);
    const var seen = reshape(s.mask, {-1, 1, 8}) > 0;
    const var weight = reshape(s.mask, {-1, 8, 1});
    const var h = x + masked_attention(query(x), key(x), value(x), seen);
    return out(sum(h * weight, {1}) / sum(weight, {1}));
  }
};
using classifier = model<encoder, sentence, cross_entropy_loss{}, optim::adam{}>;

// ---- a variational autoencoder

struct picture {
  features<64> pixels;
};
struct coded {
  var logits, centre, log_variance;
};
constexpr var normal_like(var x) {
  return sqrt(-2 * log1p(-random_uniform(x))) * cos(2 * std::numbers::pi * random_uniform(x));
}
struct autoencoder {
  models::mlp<64, 32, 8> encode{};
  models::mlp<4, 32, 64> decode{};

  constexpr coded operator()(const picture& p) const {
    const var code = encode(p.pixels);
    const var centre = slice(code, 1, 0, 4), log_variance = slice(code, 1, 4, 8);
    var z = centre;
    if (z.training()) z = z + exp(log_variance / 2) * normal_like(z);
    return {decode(z), centre, log_variance};
  }
};
inline constexpr auto negative_elbo = [](const coded& y, const picture& p) {
  const var likely = sigmoid_cross_entropy(y.logits, p.pixels, reduction::none);
  const var divergence = (square(y.centre) + exp(y.log_variance) - 1 - y.log_variance) / 2;
  return mean(sum(likely, {1}) + sum(divergence, {1}));
};
using vae = model<autoencoder, picture, negative_elbo, optim::adam{}>;

// ---- a graph net

struct molecule {
  features<6, 2> nodes;
  integers<12> from, to;
};
struct graph_net {
  models::mlp<4, 16, 16> message{};
  models::mlp<18, 16, 1> update{};

  constexpr var operator()(const molecule& m) const {
    // The nodes of all samples lie in a row: those of sample i begin at 6 i.
    const var first = 6 * iota(*m.from.b, m.from.type(), 0);
    const var from = reshape(m.from + first, {-1}), to = reshape(m.to + first, {-1});
    const var x = reshape(m.nodes, {-1, 2});
    const var sent = message(concat({gather(x, from), gather(x, to)}, 1));
    const var heard = scatter(sent, to, x.extent(0));
    return sum(reshape(update(concat({x, heard}, 1)), {-1, 6}), {1}, true);
  }
};
using energy = model<graph_net, molecule, squared_error_loss{}, optim::adam{}>;

TEST_CASE("an encoder finds a word, and padding says nothing to it") {
  constexpr int n = 256;
  std::vector<std::int32_t> words, labels;
  std::vector<float> mask;
  generator random(1);
  for (int i = 0; i < n; ++i) {
    const int length = 2 + i % 7;
    bool found = false;
    for (int k = 0; k < 8; ++k) {
      const int word = random.uniform(0.f, 1.f) < 0.12f ? 3 : int(random.uniform(4.f, 10.f));
      found = found || (k < length && word == 3);
      words.push_back(word);
      mask.push_back(k < length ? 1.f : 0.f);
    }
    labels.push_back(found);
  }
  classifier m({.seed = 1});
  const data::tensor_dataset sentences(data::column<std::int32_t>({n, 8}, words),
                                       data::column<float>({n, 8}, mask), data::column(labels));
  m.fit(sentences.shuffle(1), {.epochs = 40, .learning_rate = 0.005});
  CHECK(m.evaluate(sentences, metrics::accuracy{})["accuracy"] > 0.95);
  const auto logits = m.predict(words, mask);

  for (std::size_t i = 0; i < words.size(); ++i) {
    if (mask[i] == 0) words[i] = 3;
  }
  const auto again = m.predict(words, mask);
  CHECK(std::equal(logits.begin(), logits.end(), again.begin()));
}

TEST_CASE("a variational autoencoder learns bars; its loss is that of its three outputs") {
  constexpr int n = 128;
  std::vector<float> pixels;
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < 64; ++k) pixels.push_back((i % 2 ? k / 8 : k % 8) == i / 2 % 8 ? 1.f : 0.f);
  }
  vae m({.seed = 1});
  const data::tensor_dataset pictures(data::column<float>({n, 64}, pixels));
  const auto h = m.fit(pictures.shuffle(1), {.epochs = 60, .learning_rate = 0.01});
  CHECK(h.back()["loss"] < 0.6 * h.front()["loss"]);
  const auto [logits, centre, log_variance] = m.predict(pixels);

  double loss = 0;
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const double z = double(logits[i]);
    loss += std::log1p(std::exp(z)) - z * double(pixels[i]);
  }
  for (std::size_t i = 0; i < centre.size(); ++i) {
    const double c = double(centre[i]), v = double(log_variance[i]);
    loss += (c * c + std::exp(v) - 1 - v) / 2;
  }
  CHECK(m.evaluate(pictures)["loss"] == doctest::Approx(loss / n).epsilon(1e-5));
}

TEST_CASE("a graph net learns a sum over edges, whose order it does not see") {
  constexpr int n = 256;
  std::vector<float> nodes, energies;
  std::vector<std::int32_t> from, to;
  generator random(2);
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < 12; ++k) nodes.push_back(random.uniform(-1.f, 1.f));
    const auto x = [&](int node, int k) { return nodes[std::size_t(12 * i + 2 * node + k)]; };
    float& sum = energies.emplace_back();
    for (int e = 0; e < 12; ++e) {
      const int a = int(random.uniform(0.f, 6.f)), b = int(random.uniform(0.f, 6.f));
      from.push_back(a);
      to.push_back(b);
      sum += std::abs(x(a, 0) - x(b, 0)) / 12;
    }
  }
  energy m({.seed = 1});
  const data::tensor_dataset molecules(
      data::column<float>({n, 6, 2}, nodes), data::column<std::int32_t>({n, 12}, from),
      data::column<std::int32_t>({n, 12}, to), data::column<float>({n, 1}, energies));
  const auto h = m.fit(molecules.shuffle(1), {.epochs = 40, .learning_rate = 0.005});
  CHECK(h.back()["loss"] < 0.1 * h.front()["loss"]);
  const auto found = m.predict(nodes, from, to);

  for (auto* ends : {&from, &to}) {
    for (auto at = ends->begin(); at != ends->end(); at += 12) std::reverse(at, at + 12);
  }
  const auto again = m.predict(nodes, from, to);
  std::reverse(to.begin(), to.begin() + 12);  // other edges
  const auto other = m.predict(nodes, from, to);
  CHECK(other[0] != doctest::Approx(again[0]).epsilon(1e-3));
  for (std::size_t i = 0; i < std::size_t(n); ++i)
    CHECK(again[i] == doctest::Approx(found[i]).epsilon(1e-4).scale(1));
}
