// BERT: an encoder of words that sees both ways.  Devlin et al. 2018
#pragma once

#include <array>
#include <cella/nn/attention.hpp>
#include <cella/ops/activation.hpp>

namespace cella::models {

/// Attention, then two dense layers with GELU between them, each added to its input and normed
/// behind the sum: [..., T, Width] -> [..., T, Width].
template <int Width, int Heads, int Hidden = 4 * Width>
struct bert_block {
  nn::self_attention<Width, Heads> attention{};
  nn::layer_norm<Width> norm1{.epsilon = 1e-12};
  nn::dense<Width, Hidden> up{};
  nn::dense<Hidden, Width> down{};
  nn::layer_norm<Width> norm2{.epsilon = 1e-12};

  constexpr var operator()(var x) const {
    x = norm1(x + attention(x));
    return norm2(x + down(gelu(up(x))));
  }
};

/// What a BERT makes of a text: a vector for each place, and one for the whole.
struct bert_result {
  var places;  ///< [N, T, Width]
  var pooled;  ///< [N, Width], of the first place
};

/// Words [N, T], T at most `Places` -> vectors. All words are seen; texts are of one length.
/// bert<30522, 768, 12, 12, 512>, which is `bert_base`, has 109,482,240 parameters.
template <int Words, int Width, int Heads, int Layers, int Places, int Kinds = 2>
struct bert {
  nn::embedding<Words, Width> word{};
  parameter<Places, Width> place{initializer::normal(0, 0.02)};
  nn::embedding<Kinds, Width> kind{};
  nn::layer_norm<Width> norm{.epsilon = 1e-12};
  std::array<bert_block<Width, Heads>, std::size_t(Layers)> blocks{};
  nn::dense<Width, Width> pooler{};

  /// All words are of the first kind.
  constexpr bert_result operator()(var words) const {
    const var first = slice(operand(kind.weight).in(*words.b), 0, 0, 1);
    return encode(words, word(words) + first);
  }
  /// `kinds` [N, T], 0 to Kinds - 1: to which sentence each word belongs.
  constexpr bert_result operator()(var words, var kinds) const {
    return encode(words, word(words) + kind(kinds));
  }

 private:
  constexpr bert_result encode(var words, var x) const {
    const int count = words.extent(-1);
    x = norm(x + slice(operand(place).in(*words.b), 0, 0, count));
    for (const auto& block : blocks) x = block(x);
    const var first = reshape(slice(x, 1, 0, 1), {words.extent(0), Width});
    return {x, tanh(pooler(first))};
  }
};
/// The smaller of the two published nets, for texts of up to 512 words.
using bert_base = bert<30522, 768, 12, 12, 512>;

}  // namespace cella::models
