// Blocks of transformers: attention and dense layers, each beside a residual connection.
#pragma once

#include <cella/nn/activations.hpp>
#include <cella/nn/grouped_attention.hpp>

namespace cella {

namespace nn {

/// What the blocks of this file may be told.
struct block_options {
  bool norm_first = true;  ///< norms stand before what they belong to, or else behind the sum
  double dropout = 0;      ///< of what is added, while training
};

}  // namespace nn

namespace detail {

/// x + f(x), and where the norm stands.
template <class Norm, class F>
constexpr var residual_block(const Norm& norm, const nn::block_options& o, var x, F f,
                             std::source_location at) {
  if (o.norm_first) return x + operand(cella::dropout({f(norm(x, at)), at}, o.dropout), at);
  return norm(x + operand(cella::dropout({f(x), at}, o.dropout), at), at);
}

}  // namespace detail

namespace nn {

/// Attention of a sequence to itself, then two dense layers: [N,T,Width] -> [N,T,Width]. A mask,
/// bool, broadcasts to [N,Heads,T,T].  Vaswani et al. 2017; norms first: Xiong et al. 2020
template <int Width, int Heads, int Hidden = 4 * Width, var (*Activation)(operand) = &cella::relu>
struct encoder_block {
  layer_norm<Width> norm1{};
  attention<Width, Heads> self{};
  layer_norm<Width> norm2{};
  feed_forward<Width, Hidden, Activation> dense{};
  block_options options{};

  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    return (*this)(x, var{}, at);
  }
  constexpr var operator()(var x, var mask,
                           std::source_location at = std::source_location::current()) const {
    const cell_scope scope(x, *this);
    x = cella::detail::residual_block(
        norm1, options, x, [&](var v) { return self(v, v, mask, at); }, at);
    return cella::detail::residual_block(
        norm2, options, x, [&](var v) { return dense(v, at); }, at);
  }
};

/// Causal attention of a sequence to itself, attention to what an encoder made, then two dense
/// layers: [N,T,Width] and [N,S,Width] -> [N,T,Width]. A mask of the second, bool, broadcasts to
/// [N,Heads,T,S].  Vaswani et al. 2017
template <int Width, int Heads, int Hidden = 4 * Width, var (*Activation)(operand) = &cella::relu>
struct decoder_block {
  layer_norm<Width> norm1{};
  attention<Width, Heads> self{.causal = true};
  layer_norm<Width> norm2{};
  attention<Width, Heads> cross{};
  layer_norm<Width> norm3{};
  feed_forward<Width, Hidden, Activation> dense{};
  block_options options{};

  constexpr var operator()(var x, var memory,
                           std::source_location at = std::source_location::current()) const {
    return (*this)(x, memory, var{}, at);
  }
  constexpr var operator()(var x, var memory, var mask,
                           std::source_location at = std::source_location::current()) const {
    const cell_scope scope(x, *this);
    x = cella::detail::residual_block(
        norm1, options, x, [&](var v) { return self(v, at); }, at);
    x = cella::detail::residual_block(
        norm2, options, x, [&](var v) { return cross(v, memory, mask, at); }, at);
    return cella::detail::residual_block(
        norm3, options, x, [&](var v) { return dense(v, at); }, at);
  }
};

}  // namespace nn
}  // namespace cella
