// Attention of a sequence to itself, as a cell.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/ops/attention.hpp>

namespace cella::nn {

/// Multi-head attention of a sequence to itself: [..., T, Width] -> [..., T, Width]. Queries, keys
/// and values come from one dense layer, in this order along its output. `causal`: no place sees a
/// later one.  Vaswani et al. 2017
template <int Width, int Heads>
struct self_attention {
  dense<Width, 3 * Width> qkv{};
  dense<Width, Width> out{};
  bool causal = false;

  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    const cell_scope scope(x, *this);
    if (!detail::divides("self_attention", "heads", Heads, "features", Width, x, at)) return x;
    if (x.rank() < 2 || x.extent(-1) != Width) {
      x.b->fail(text() << at << ": self_attention: needs a sequence [...,T," << Width
                       << "]: " << x.b->describe(x.id) << " is " << x.shape());
      return x;
    }
    const var all = qkv(x, at);
    const auto part = [&](int i) {
      return operand(slice({all, at}, -1, i * Width, (i + 1) * Width), at);
    };
    return out(multi_head_attention(part(0), part(1), part(2), Heads, causal), at);
  }
};

}  // namespace cella::nn
