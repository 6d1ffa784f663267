// A layer of which each word takes one of many parts: experts, and the router that chooses.
#pragma once

#include <algorithm>
#include <cella/nn/layers.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/cumulative.hpp>
#include <cella/ops/one_hot.hpp>
#include <cella/ops/softmax.hpp>

namespace cella::nn {

/// What a mixture of experts returns: the result, and how unevenly words went to experts.
struct mixed {
  var value;
  var imbalance;  ///< a number, 1 where all experts have as many words: see mixture_of_experts
};

/// y = p_e FFN_e(x) for the expert e of greatest p = softmax(router(x)): [N,T,Width] ->
/// [N,T,Width], where FFN_e is two dense layers with relu between them. In each sequence an expert
/// has room for `capacity` T / Experts words, rounded up; what comes later in the sequence gets 0.
/// The imbalance is Experts sum_e f_e p_e with the share f_e of words that chose e and the mean p_e
/// of its probability; a hundredth of it belongs to the loss.  Fedus et al. 2021 (Switch
/// Transformer), with a group of Lepikhin et al. 2020 for each sequence, so that what words are
/// dropped does not depend on how samples are divided among ranks
template <int Width, int Hidden, int Experts>
struct mixture_of_experts {
  dense<Width, Experts, false> router{};
  parameter<Experts, Width, Hidden> up{initializer::fan_in_uniform(Width)};
  parameter<Experts, 1, Hidden> up_bias{initializer::zeros()};
  parameter<Experts, Hidden, Width> down{initializer::fan_in_uniform(Hidden)};
  parameter<Experts, 1, Width> down_bias{initializer::zeros()};
  double capacity = 1.25;

  constexpr mixed operator()(var x,
                             std::source_location at = std::source_location::current()) const {
    const cell_scope scope(x, *this);
    builder& b = *x.b;
    if (x.rank() != 3 || x.extent(2) != Width || !(capacity > 0)) {
      b.fail(text() << at << ": mixture_of_experts: needs sequences [N,T," << Width
                    << "] and a capacity above 0: " << b.describe(x.id) << " is " << x.shape()
                    << ", and the capacity is " << capacity);
      return {x, x};
    }
    const int n = x.extent(0), words = x.extent(1);
    const int room = room_for(words);
    const var p = cella::softmax({router(x, at), at}, -1);
    const var chosen = one_hot({argmax(p, -1), at}, Experts, x.element());
    // The place of each word in the queue of its expert; who finds none there is all zeros.
    const var place = sum((cumsum(chosen, 1) - 1) * chosen, {-1});
    const var sent =
        reshape(expand_dims(chosen, -1) *
                    expand_dims(one_hot(cast(place, dtype::i32), room, x.element()), 2),
                {n, words, Experts * room});
    const var to = reshape(matmul(transpose(sent, {0, 2, 1}), x), {n, Experts, room, Width});
    const var each = reshape(transpose(to, {1, 0, 2, 3}), {Experts, n * room, Width});
    const var y = matmul(cella::relu(matmul(each, up) + up_bias), down) + down_bias;
    const var from = transpose(reshape(y, {Experts, n, room, Width}), {1, 0, 2, 3});
    const var weight = sum(p * chosen, {-1}, true);
    const var share = mean(reshape(chosen, {-1, Experts}), {0});
    const var likely = mean(reshape(p, {-1, Experts}), {0});
    return {weight * matmul(sent, reshape(from, {n, Experts * room, Width})),
            Experts * sum(share * likely)};
  }
  /// Words of a sequence of `words` that an expert has room for.
  constexpr int room_for(int words) const {
    const double most = capacity * words / Experts;
    const int whole = int(most);
    return std::clamp(whole + (whole < most), 1, words);
  }
};

}  // namespace cella::nn
