// A decoder-only transformer.  Radford et al. 2019 (GPT-2)
#pragma once

#include <array>
#include <cella/nn/attention.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/slicing.hpp>

namespace cella::detail {

/// The vectors of the places of words [..., T], T at most Places. One word alone would else be
/// taken for that of all places.
template <int Places, int Width>
constexpr var places_of(const parameter<Places, Width>& place, var words) {
  const var all = place;
  const bool fewer = words.rank() > 0 && words.extent(-1) < Places;
  return fewer ? slice(all, 0, 0, words.extent(-1)) : all;
}

}  // namespace cella::detail

namespace cella::models {

/// Causal attention, then two dense layers with GELU between them, each behind a layer norm and
/// beside a residual connection: [..., T, Width] -> [..., T, Width].
template <int Width, int Heads>
struct transformer_block {
  nn::layer_norm<Width> norm1{};
  nn::self_attention<Width, Heads> attention{.causal = true};
  nn::layer_norm<Width> norm2{};
  nn::dense<Width, 4 * Width> up{};
  nn::dense<4 * Width, Width> down{};

  constexpr var operator()(var x) const { return dense_part(x + attention(norm1(x))); }
  /// The dense layers and what stands beside them.
  constexpr var dense_part(var x) const { return x + down(gelu_tanh(up(norm2(x)))); }
};

/// Words [N, T], 0 to Words - 1, T at most Places -> logits of the next word [N, T, Words].
template <int Words, int Width, int Heads, int Layers, int Places>
struct gpt {
  nn::embedding<Words, Width> word{};
  parameter<Places, Width> place{initializer::normal(0, 0.02)};
  std::array<transformer_block<Width, Heads>, std::size_t(Layers)> blocks{};
  nn::layer_norm<Width> norm{};
  nn::dense<Width, Words, false> head{};

  constexpr var operator()(var words) const {
    var x = word(words) + detail::places_of(place, words);
    for (const auto& block : blocks) x = block(x);
    return head(norm(x));
  }
};

}  // namespace cella::models
