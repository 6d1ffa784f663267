// A transformer that reads images patch by patch.  Dosovitskiy et al. 2021
#pragma once

#include <array>
#include <cella/nn/attention.hpp>
#include <cella/ops/activation.hpp>

namespace cella::models {

/// Attention, then two dense layers with GELU between them, each behind a layer norm and beside a
/// residual connection: [N, T, Width] -> [N, T, Width].
template <int Width, int Heads>
struct vit_block {
  nn::layer_norm<Width> norm1{.epsilon = 1e-6};
  nn::self_attention<Width, Heads> attention{};
  nn::layer_norm<Width> norm2{.epsilon = 1e-6};
  nn::dense<Width, 4 * Width> up{};
  nn::dense<4 * Width, Width> down{};

  constexpr var operator()(var x) const {
    x = x + attention(norm1(x));
    return x + down(gelu(up(norm2(x))));
  }
};

/// Images [N, 3, Side, Side] -> logits [N, Classes]. vit<192, 3, 12> (ViT-Ti/16 of Touvron et al.
/// 2021) has 5,717,416 parameters, vit<768, 12, 12> (ViT-B/16) 86,567,656.
template <int Width, int Heads, int Layers, int Patch = 16, int Side = 224, int Classes = 1000>
struct vit {
  static_assert(Side % Patch == 0, "vit: the patches must divide the side of the image");
  static constexpr int row = Side / Patch, places = row * row + 1;
  nn::conv2d<3, Width, Patch> patches{.stride = Patch};
  parameter<1, 1, Width> first{initializer::normal(0, 0.02)};
  parameter<places, Width> place{initializer::normal(0, 0.02)};
  std::array<vit_block<Width, Heads>, std::size_t(Layers)> blocks{};
  nn::layer_norm<Width> norm{.epsilon = 1e-6};
  nn::dense<Width, Classes> head{};

  constexpr var operator()(var images) const {
    const int count = images.extent(0);
    const var seen = transpose(reshape(patches(images), {count, Width, row * row}), {0, 2, 1});
    const var start = broadcast_to(first, {count, 1, Width});
    var x = concat({start, seen}, 1) + place;
    for (const auto& block : blocks) x = block(x);
    // The first place has gathered what the others have seen.
    return head(norm(reshape(slice(x, 1, 0, 1), {count, Width})));
  }
};

}  // namespace cella::models
