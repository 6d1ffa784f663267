// A decoder-only transformer.  Radford et al. 2019 (GPT-2)
#pragma once

#include <array>
#include <cella/nn/attention.hpp>
#include <cella/ops/activation.hpp>

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

/// Words [N, Places], 0 to Words - 1 -> logits of the next word [N, Places, Words].
template <int Words, int Width, int Heads, int Layers, int Places>
struct gpt {
  nn::embedding<Words, Width> word{};
  parameter<Places, Width> place{initializer::normal(0, 0.02)};
  std::array<transformer_block<Width, Heads>, std::size_t(Layers)> blocks{};
  nn::layer_norm<Width> norm{};
  nn::dense<Width, Words, false> head{};

  constexpr var operator()(var words) const {
    var x = word(words) + place;
    for (const auto& block : blocks) x = block(x);
    return head(norm(x));
  }
};

}  // namespace cella::models
