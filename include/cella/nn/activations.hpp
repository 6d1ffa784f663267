// Activations as cells, which stand between the layers of `sequential`; gated units; what is not in
// ops/activation.hpp.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/ops/softmax.hpp>

namespace cella {

/// x for x > 0, else alpha (e^(x / alpha) - 1).  Barron 2017
constexpr var celu(operand x, double alpha = 1) {
  const var v = x.in(*x.owner());
  const var positive = v > 0;
  return select(positive, v, alpha * expm1(select(positive, zeros_like(v), v) / alpha));
}
/// x between two bounds, which are what lies beyond them.
constexpr var hard_tanh(operand x, double low = -1, double high = 1) { return clamp(x, low, high); }
/// x where |x| > bound, else 0.
constexpr var hard_shrink(operand x, double bound = 0.5) {
  const var v = x.in(*x.owner());
  return select(abs(v) > bound, v, zeros_like(v));
}
/// x moved by `bound` towards 0, and 0 where |x| is at most that.
constexpr var soft_shrink(operand x, double bound = 0.5) {
  const var v = x.in(*x.owner());
  return v - clamp(v, -bound, bound);
}
/// x - tanh x
constexpr var tanh_shrink(operand x) {
  const var v = x.in(*x.owner());
  return v - tanh(v);
}
/// x where x > bound, else `otherwise`.
constexpr var threshold(operand x, double bound, double otherwise = 0) {
  const var v = x.in(*x.owner());
  return select(v > bound, v, full_like(v, otherwise));
}
/// The first half along `axis` times the sigmoid of the second.  Dauphin et al. 2017
constexpr var glu(operand x, int axis = -1) {
  const list<var> halves = split(x, 2, axis);
  return halves.size() == 2 ? halves[0] * sigmoid(halves[1]) : x.in(*x.owner());
}

namespace nn {

/// A function of one operand as a cell: `activation<&cella::relu>`.
template <var (*Function)(operand)>
struct activation {
  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    return Function({x, at});
  }
};
/// cella::relu as a cell.
using relu = activation<&cella::relu>;
/// cella::relu6 as a cell.
using relu6 = activation<&cella::relu6>;
/// cella::gelu as a cell.
using gelu = activation<&cella::gelu>;
/// cella::gelu_tanh as a cell.
using gelu_tanh = activation<&cella::gelu_tanh>;
/// cella::silu as a cell.
using silu = activation<&cella::silu>;
/// cella::mish as a cell.
using mish = activation<&cella::mish>;
/// cella::selu as a cell.
using selu = activation<&cella::selu>;
/// cella::sigmoid as a cell.
using sigmoid = activation<&cella::sigmoid>;
/// cella::tanh as a cell.
using tanh = activation<&cella::tanh>;
/// cella::softplus as a cell.
using softplus = activation<&cella::softplus>;
/// cella::softsign as a cell.
using softsign = activation<&cella::softsign>;
/// cella::log_sigmoid as a cell.
using log_sigmoid = activation<&cella::log_sigmoid>;
/// cella::hard_sigmoid as a cell.
using hard_sigmoid = activation<&cella::hard_sigmoid>;
/// cella::hard_swish as a cell.
using hard_swish = activation<&cella::hard_swish>;
/// cella::flatten as a cell.
using flatten = activation<&cella::flatten>;

/// cella::leaky_relu as a cell.
struct leaky_relu {
  double slope = 0.01;
  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    return cella::leaky_relu({x, at}, slope);
  }
};
/// cella::elu as a cell.
struct elu {
  double alpha = 1;
  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    return cella::elu({x, at}, alpha);
  }
};
/// cella::softmax as a cell.
struct softmax {
  int axis = -1;
  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    return cella::softmax({x, at}, axis);
  }
};
/// cella::glu as a cell.
struct glu {
  int axis = -1;
  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    return cella::glu({x, at}, axis);
  }
};

/// x for x > 0, else slope x with learned slopes: one for all, or one for each channel of
/// [N,C,...].  He et al. 2015
template <int Channels = 1>
struct prelu {
  parameter<Channels> slope{initializer::constant(0.25)};

  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    const cell_scope scope(x, *this);
    if (Channels == 1) return cella::prelu({x, at}, {slope, at});
    if (x.rank() < 2 || x.extent(1) != Channels) {
      x.b->fail(text() << at << ": prelu: needs " << Channels
                       << " channels: " << x.b->describe(x.id) << " is " << x.shape());
      return x;
    }
    const var slopes = detail::along_axis(operand(slope, at).in(*x.b), x.rank(), 1);
    return cella::prelu({x, at}, {slopes, at});
  }
};

/// Two dense layers with an activation between them, at each place: [...,Width] -> [...,Width].
template <int Width, int Hidden, var (*Activation)(operand) = &cella::gelu>
struct feed_forward {
  dense<Width, Hidden> up{};
  dense<Hidden, Width> down{};

  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    const cell_scope scope(x, *this);
    return down(Activation({up(x, at), at}), at);
  }
};
/// down(activation(gate x) * (up x)), without biases: [...,Width] -> [...,Width].  Shazeer 2020
template <int Width, int Hidden, var (*Activation)(operand)>
struct gated_feed_forward {
  dense<Width, Hidden, false> gate{};
  dense<Width, Hidden, false> up{};
  dense<Hidden, Width, false> down{};

  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    const cell_scope scope(x, *this);
    return down(Activation({gate(x, at), at}) * up(x, at), at);
  }
};
/// The gated unit of Llama and its kin.
template <int Width, int Hidden>
using swiglu = gated_feed_forward<Width, Hidden, &cella::silu>;
/// Gated by gelu.
template <int Width, int Hidden>
using geglu = gated_feed_forward<Width, Hidden, &cella::gelu>;
/// Gated by relu.
template <int Width, int Hidden>
using reglu = gated_feed_forward<Width, Hidden, &cella::relu>;

}  // namespace nn
}  // namespace cella
