// A decoder-only transformer whose dense layers are mixtures of experts.  Fedus et al. 2021
#pragma once

#include <cella/models/gpt.hpp>
#include <cella/nn/mixture_of_experts.hpp>

namespace cella::models {

/// Words [N, T], 0 to Words - 1, T at most Places -> logits of the next word [N, T, Words], and the
/// mean imbalance of the layers' experts.
template <int Words, int Width, int Heads, int Layers, int Places, int Experts>
struct switch_gpt {
  /// As transformer_block, but for the experts.
  struct block {
    nn::layer_norm<Width> norm1{};
    nn::self_attention<Width, Heads> attention{.causal = true};
    nn::layer_norm<Width> norm2{};
    nn::mixture_of_experts<Width, 4 * Width, Experts> experts{};
  };
  nn::embedding<Words, Width> word{};
  parameter<Places, Width> place{initializer::normal(0, 0.02)};
  std::array<block, std::size_t(Layers)> blocks{};
  nn::layer_norm<Width> norm{};
  nn::dense<Width, Words, false> head{};

  constexpr nn::mixed operator()(var words) const {
    var x = word(words) + detail::places_of(place, words);
    var imbalance{};
    for (const block& each : blocks) {
      x = x + each.attention(each.norm1(x));
      const nn::mixed y = each.experts(each.norm2(x));
      x = x + y.value;
      imbalance = imbalance.b ? imbalance + y.imbalance : y.imbalance;
    }
    return {head(norm(x)), imbalance / Layers};
  }
};

}  // namespace cella::models
