// Cells with parameters: dense, conv2d, batch_norm, layer_norm, embedding, and one without:
// dropout.
#pragma once

#include <cella/graph/once.hpp>
#include <cella/ops/convolution.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/normalization.hpp>
#include <cella/ops/random.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/transform/trace.hpp>
#include <tuple>

namespace cella::detail {

/// A fault unless so many groups, heads ... of a layer divide what they share.
CELLA_ONCE constexpr bool divides(std::string_view layer, std::string_view parts, int count,
                                  std::string_view shared, int of, var x, std::source_location at) {
  if (count > 0 && of % count == 0) return true;
  x.b->fail(text() << at << ": " << layer << ": " << count << " " << parts << " do not divide "
                   << of << " " << shared);
  return false;
}
/// Of each of so many groups, heads ...; what is no number of them the layer refuses itself.
constexpr int size_of_part(int whole, int parts) { return parts > 0 ? whole / parts : whole; }

/// What batch_norm computes, whatever its number of channels.
struct batch_norm_parts {
  const parameter_base &weight, &bias, &running_mean, &running_var;
  double epsilon, momentum;

  CELLA_ONCE constexpr var normalize(var x, int channels, std::source_location at) const {
    builder& b = *x.b;
    if (x.rank() < 2 || x.extent(1) != channels) {
      b.fail(text() << at << ": batch_norm: needs " << channels << " channels: " << b.describe(x.id)
                    << " is " << x.shape());
      return x;
    }
    if (!(epsilon >= 0) || !(momentum >= 0 && momentum <= 1)) {
      b.fail(text() << at << ": batch_norm: epsilon is " << epsilon << " and momentum " << momentum
                    << "; epsilon must not be negative, and momentum must lie in [0, 1]");
      return x;
    }
    unsigned folded = (1u << x.rank()) - 1;
    folded &= ~2u;
    const double count = double(x.shape().size()) / channels;
    auto along_channels = [&](var v) { return repeat_along(v, x.shape(), folded); };
    const var mean = operand(running_mean, at).in(b);
    const var variance = operand(running_var, at).in(b);
    if (x.training()) {
      const auto y =
          normalize_batch({x, at}, operand(weight, at).in(b), operand(bias, at).in(b), epsilon);
      const double unbiased = count > 1 ? count / (count - 1) : 1;
      assign(x, running_mean, mean * (1 - momentum) + stop_gradient(y.mean) * momentum, at);
      assign(x, running_var,
             variance * (1 - momentum) + stop_gradient(y.variance) * (momentum * unbiased), at);
      return y.value;
    }
    const var scale = rsqrt(variance + epsilon) * operand(weight, at);
    return (x - along_channels(mean)) * along_channels(scale) +
           along_channels(operand(bias, at).in(b));
  }
};

}  // namespace cella::detail

namespace cella::nn {

/// y = x weight^T + bias: [N, In] -> [N, Out]; leading axes of x are kept.
template <int In, int Out, bool Bias = true>
struct dense {
  parameter<Out, In> weight{initializer::fan_in_uniform(In)};
  parameter<Out> bias{initializer::fan_in_uniform(In)};

  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    const cell_scope scope(x, *this);
    return matmul({x, at}, {weight, at}, false, true) + operand(bias, at);
  }
};
template <int In, int Out>
struct dense<In, Out, false> {
  parameter<Out, In> weight{initializer::fan_in_uniform(In)};

  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    const cell_scope scope(x, *this);
    return matmul({x, at}, {weight, at}, false, true);
  }
};

/// Convolution with square filters: [N, In, H, W] -> [N, Out, OH, OW], OH = (H + 2 padding -
/// dilation (Kernel - 1) - 1) / stride + 1.
template <int In, int Out, int Kernel, bool Bias = true, int Groups = 1>
struct conv2d {
  parameter<Out, detail::size_of_part(In, Groups), Kernel, Kernel> weight{};
  parameter<Out> bias{initializer::fan_in_uniform(std::int64_t{detail::size_of_part(In, Groups)} *
                                                  Kernel * Kernel)};
  int stride = 1;
  int padding = 0;
  int dilation = 1;

  constexpr window walk() const {
    return {{stride, stride}, {padding, padding}, {padding, padding}, {dilation, dilation}, Groups};
  }
  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    const cell_scope scope(x, *this);
    const var y = cella::conv2d({x, at}, {weight, at}, walk());
    return y + operand(reshape(operand(bias, at).in(*x.b), {Out, 1, 1}), at);
  }
};
template <int In, int Out, int Kernel, int Groups>
struct conv2d<In, Out, Kernel, false, Groups> {
  parameter<Out, detail::size_of_part(In, Groups), Kernel, Kernel> weight{};
  int stride = 1;
  int padding = 0;
  int dilation = 1;

  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    const cell_scope scope(x, *this);
    return cella::conv2d(
        {x, at}, {weight, at},
        {{stride, stride}, {padding, padding}, {padding, padding}, {dilation, dilation}, Groups});
  }
};

/// Batch normalization over the channels of [N, C, ...] or [N, C].  Ioffe and Szegedy 2015
/// While training it uses the batch's statistics and updates the running ones (variance unbiased,
/// as in PyTorch); otherwise it uses the running ones.
template <int Channels>
struct batch_norm {
  parameter<Channels> weight{initializer::ones()};
  parameter<Channels> bias{initializer::zeros()};
  state<Channels> running_mean{initializer::zeros()};
  state<Channels> running_var{initializer::ones()};
  double epsilon = 1e-5;
  double momentum = 0.1;

  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    const cell_scope scope(x, *this);
    return detail::batch_norm_parts{weight, bias, running_mean, running_var, epsilon, momentum}
        .normalize(x, Channels, at);
  }
};

/// Normalizes each vector along the last axis: [..., Width] -> [..., Width].  Ba et al. 2016
template <int Width>
struct layer_norm {
  parameter<Width> weight{initializer::ones()};
  parameter<Width> bias{initializer::zeros()};
  double epsilon = 1e-5;

  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    const cell_scope scope(x, *this);
    if (x.rank() == 0 || x.extent(-1) != Width) {
      x.b->fail(text() << at << ": layer_norm: needs " << Width << " values along the last axis: "
                       << x.b->describe(x.id) << " is " << x.shape());
      return x;
    }
    if (!(epsilon >= 0)) {
      x.b->fail(text() << at << ": layer_norm: epsilon is " << epsilon
                       << "; it must not be negative");
      return x;
    }
    return cella::layer_norm({x, at}, {weight, at}, {bias, at}, {-1}, epsilon);
  }
};

/// A vector for each word: integers [...], 0 to Words - 1 -> [..., Width].
template <int Words, int Width>
struct embedding {
  parameter<Words, Width> weight{initializer::normal()};

  constexpr var operator()(var words,
                           std::source_location at = std::source_location::current()) const {
    const cell_scope scope(words, *this);
    return cella::embedding({words, at}, {weight, at});
  }
};

/// Drops elements while training; see cella::dropout.
struct dropout {
  double rate = 0.5;
  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    const cell_scope scope(x, *this);
    return cella::dropout({x, at}, rate);
  }
};

}  // namespace cella::nn
