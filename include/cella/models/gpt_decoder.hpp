// A GPT that writes: it keeps the keys and values of the words so far, so that each word costs one
// place and not all of them.
#pragma once

#include <cella/models/gpt.hpp>
#include <cella/ops/put_rows.hpp>

namespace cella::models {

/// A word [1, 1] and its place [], 0 to Places - 1 -> logits of the next word [1, 1, Words]: the
/// same as the net's for all words at once. Places are handed in one after the other; a text begins
/// again at 0. Parameters are those of `gpt`, behind "net.".
template <int Words, int Width, int Heads, int Layers, int Places>
struct gpt_decoder {
  static constexpr int width = Width / Heads;  ///< of a head
  gpt<Words, Width, Heads, Layers, Places> net{};
  std::array<state<Heads, Places, width>, std::size_t(Layers)> keys{}, values{};

  constexpr var operator()(var word, var place) const {
    const var at = reshape(place, {1});
    var x = net.word(word) + gather(net.place, at);
    // Of the element type of the scores, so that their loops compute it: it is exact.
    const tensor_type all{x.element(), {Heads, 1, Places}};
    const var seen = iota(*x.b, all, 2) <= cast(place, x.element());
    for (std::size_t k = 0; k < keys.size(); ++k) {
      const auto& block = net.blocks[k];
      const var qkv = block.attention.qkv(block.norm1(x));
      const auto part = [&](int i) {
        return reshape(slice(qkv, -1, i * Width, (i + 1) * Width), {Heads, 1, width});
      };
      const var key = put_rows(keys[k], at, part(1), 1);
      const var value = put_rows(values[k], at, part(2), 1);
      assign(x, keys[k], key);
      assign(x, values[k], value);
      const var scores = detail::attention_scores(part(0), key);
      const var weights =
          softmax(select(seen, scores, -std::numeric_limits<double>::infinity()), -1);
      x = block.dense_part(x + block.attention.out(reshape(matmul(weights, value), {1, 1, Width})));
    }
    return net.head(net.norm(x));
  }
};

}  // namespace cella::models
