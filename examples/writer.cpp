// A decoder writes word by word and keeps the keys and values of what it has written, so that a
// word costs one place and not all of them. It learns to write numbers backwards: 31415=51413.
// Vaswani et al. 2017
#include <algorithm>
#include <array>
#include <cella/data/dataset.hpp>
#include <cella/nn/grouped_attention.hpp>
#include <cella/nn/transformer.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/train/model.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "report.hpp"

using namespace cella;

constexpr int digits = 5;
constexpr int places = 2 * digits;  // read: 31415=5141, the last digit is only written
constexpr int width = 32, heads = 4, vocabulary = 11;  // 0 to 9, and =

struct Block {
  nn::layer_norm<width> norm1;
  nn::attention<width, heads> self{.causal = true};
  nn::layer_norm<width> norm2;
  nn::feed_forward<width, 2 * width> dense;

  constexpr var operator()(var x) const {
    x = x + self(norm1(x));
    return x + dense(norm2(x));
  }
  /// The same of one place behind those in the cache.
  constexpr auto step(var x, key_value_cache cache, var place) const {
    auto [y, kept] = self.step(norm1(x), cache, place);
    x = x + y;
    return std::pair{x + dense(norm2(x)), kept};
  }
};

struct Decoder {
  nn::embedding<vocabulary, width> word;
  parameter<places, width> place{initializer::normal(0, 0.1)};
  std::array<Block, 2> blocks;
  nn::dense<width, vocabulary> next;

  /// Words [N, places] -> scores of what comes behind each.
  constexpr var operator()(var text) const {
    var x = word(text) + place;
    for (const Block& b : blocks) x = b(x);
    return next(x);
  }
};
/// One word, and its place -> scores of the next one. The states are the cache.
struct Writer {
  Decoder net;
  std::array<state<1, places, width>, 2> keys, values;

  constexpr var operator()(var text, var at) const {
    var x = net.word(text) + gather(net.place, at);
    for (std::size_t k = 0; k < keys.size(); ++k) {
      const key_value_cache cache{stop_gradient(keys[k]), stop_gradient(values[k])};
      const auto [y, kept] = net.blocks[k].step(x, cache, at);
      assign(x, keys[k], kept.keys);
      assign(x, values[k], kept.values);
      x = y;
    }
    return net.next(x);
  }
};

using reader = model<Decoder, tokens<places>, nn::token_cross_entropy{}, optim::adam{},
                     model_options{.batch = 64}>;
using writing = inference_program<Writer, tensor<dtype::i32, 1, 1>, tensor<dtype::i32>>;

/// A number, =, and the same backwards.
std::vector<std::int32_t> sentence(generator& random) {
  std::vector<std::int32_t> s;
  for (int i = 0; i < digits; ++i) s.push_back(int(random.uniform() * 10));
  s.push_back(10);
  for (int i = digits; i > 0; --i) s.push_back(s[std::size_t(i) - 1]);
  return s;
}

int main(int argc, char** argv) {
  return report(argc, argv, [] {
    generator random(1);
    std::vector<std::int32_t> x, y;
    constexpr int count = 8000;
    for (int n = 0; n < count; ++n) {
      const auto s = sentence(random);
      x.insert(x.end(), s.begin(), s.end() - 1);
      y.insert(y.end(), s.begin() + 1, s.end());
    }
    reader m({.seed = 1});
    m.fit(data::tensor_dataset(data::column<std::int32_t>({count, places}, x),
                               data::column<std::int32_t>({count, places}, y))
              .shuffle(1),
          {.epochs = 8, .learning_rate = 0.003});

    Writer cell;
    parameter_store store(cell, 1);
    store.copy_part(m.parameters(), "", "net");
    executable<writing> write(store);
    int right = 0;
    double difference = 0;  // of the scores from those of the whole sentence at once
    constexpr int asked = 100;
    for (int n = 0; n < asked; ++n) {
      const auto s = sentence(random);
      std::vector<std::int32_t> written(s.begin(), s.begin() + digits + 1);
      std::vector<float> scores;
      for (std::int32_t at = 0; at < places; ++at) {
        write(std::array{written[std::size_t(at)]}, std::array{at});
        const auto next = write.result();
        scores.insert(scores.end(), next.begin(), next.end());
        if (written.size() == std::size_t(at) + 1)
          written.push_back(std::int32_t(std::ranges::max_element(next) - next.begin()));
      }
      right += written == s;
      const auto whole = m.predict(written.data(), 1);
      for (std::size_t i = 0; i < scores.size(); ++i)
        difference = std::max(difference, std::abs(double(scores[i] - whole[i])));
    }
    return nlohmann::ordered_json{{"right", double(right) / asked}, {"difference", difference}};
  });
}
