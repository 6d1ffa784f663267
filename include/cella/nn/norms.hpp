// Normalizations as cells beside batch_norm and layer_norm, and layers whose weights are
// normalized.
#pragma once

#include <cella/nn/layers.hpp>

namespace cella {

/// v scaled so that each of its slices along the first axis has the norm that g [Out] says.
/// Salimans and Kingma 2016
constexpr var weight_norm(operand direction, operand norm) {
  builder& b = owner_of(direction, norm);
  const var v = direction.in(b);
  const var g = norm.in(b);
  if (v.rank() < 1 || g.shape() != shape{v.extent(0)}) {
    b.fail(text() << direction.at()
                  << ": weight_norm: needs weights [Out,...] and norms [Out]: " << b.describe(v.id)
                  << " is " << v.shape() << ", " << b.describe(g.id) << " is " << g.shape());
    return v;
  }
  const unsigned others = ((1u << v.rank()) - 1) & ~1u;
  const var squares = others ? sum_axes(square(v), others, direction.at()) : square(v);
  return v * detail::along_axis(g * rsqrt(squares), v.rank(), 0);
}

/// What `spectral_norm` yields: the weight divided by its largest singular value, and the vectors
/// that the next step begins with.
struct spectral_normalized {
  var value;
  var left;
  var right;
};
/// weight / sigma, where sigma is the largest singular value of weight [Out,...], its other axes
/// taken together. It is estimated from vectors left [Out] and right [all others] by `steps` of
/// power iteration, which are constant for derivatives.  Miyato et al. 2018
constexpr spectral_normalized spectral_norm(operand weight, operand left, operand right,
                                            int steps = 1, double epsilon = 1e-12) {
  builder& b = *weight.owner();
  const var w = weight.in(b);
  var u = left.in(b), v = right.in(b);
  const std::int64_t rows = w.rank() ? w.extent(0) : 1;
  const std::int64_t columns = rows ? w.shape().size() / rows : 0;
  if (w.rank() < 2 || u.shape().size() != rows || v.shape().size() != columns) {
    b.fail(text() << weight.at() << ": spectral_norm: needs weights [Out,In...] and vectors [Out] "
                  << "and [In...]: " << b.describe(w.id) << " is " << w.shape() << ", "
                  << b.describe(u.id) << " is " << u.shape() << ", " << b.describe(v.id) << " is "
                  << v.shape());
    return {w, u, v};
  }
  const var matrix = reshape({w, weight.at()}, {rows, columns});
  const auto unit = [epsilon](var x) { return l2_normalize(x, {}, epsilon); };
  for (int i = 0; i < steps; ++i) {
    v = stop_gradient(unit(matmul(u, matrix)));
    u = stop_gradient(unit(matmul(matrix, v)));
  }
  const var sigma = sum(u * matmul(matrix, v));
  return {w / sigma, u, v};
}

namespace nn {

/// x / sqrt(mean(x^2) + epsilon) times a learned weight, along the last axis: [...,Width] ->
/// [...,Width].  Zhang and Sennrich 2019
template <int Width>
struct rms_norm {
  parameter<Width> weight{initializer::ones()};
  double epsilon = 1e-6;

  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    const cell_scope scope(x, *this);
    if (x.rank() == 0 || x.extent(-1) != Width) {
      x.b->fail(text() << at << ": rms_norm: needs " << Width << " values along the last axis: "
                       << x.b->describe(x.id) << " is " << x.shape());
      return x;
    }
    return cella::rms_norm({x, at}, {weight, at}, {-1}, epsilon);
  }
};

/// Normalizes groups of channels of each sample: [N,Channels,...].  Wu and He 2018
template <int Channels, int Groups>
struct group_norm {
  parameter<Channels> weight{initializer::ones()};
  parameter<Channels> bias{initializer::zeros()};
  double epsilon = 1e-5;

  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    const cell_scope scope(x, *this);
    if (!detail::divides("group_norm", "groups", Groups, "channels", Channels, x, at)) return x;
    return cella::group_norm({x, at}, {weight, at}, {bias, at}, Groups, epsilon);
  }
};

/// Normalizes each channel of each sample, then scales and shifts it: [N,Channels,...].
/// Ulyanov et al. 2016
template <int Channels>
struct instance_norm {
  parameter<Channels> weight{initializer::ones()};
  parameter<Channels> bias{initializer::zeros()};
  double epsilon = 1e-5;

  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    const cell_scope scope(x, *this);
    builder& b = *x.b;
    const var scale = operand(weight, at).in(b), offset = operand(bias, at).in(b);
    if (!detail::fits_channels("instance_norm", {x, at}, 1, {scale, offset})) return x;
    return detail::scale_channels(cella::instance_norm({x, at}, epsilon), scale, offset, 1);
  }
};

/// cella::local_response_norm as a cell.
struct local_response_norm {
  int size = 5;
  double alpha = 1e-4;
  double beta = 0.75;
  double k = 1;

  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    return cella::local_response_norm({x, at}, size, alpha, beta, k);
  }
};

/// A dense layer whose weight is a direction and a norm for each output: see cella::weight_norm.
template <int In, int Out>
struct weight_norm_dense {
  parameter<Out> weight_g{initializer::ones()};
  parameter<Out, In> weight_v{initializer::fan_in_uniform(In)};
  parameter<Out> bias{initializer::fan_in_uniform(In)};

  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    const cell_scope scope(x, *this);
    const var weight = weight_norm({weight_v, at}, {weight_g, at});
    return matmul({x, at}, {weight, at}, false, true) + operand(bias, at);
  }
};

/// A dense layer whose weight is divided by its largest singular value, which is followed by one
/// step of power iteration for each training step: see cella::spectral_norm. It begins with random
/// vectors, for which an untrained net divides by a number that says nothing; PyTorch's does 15
/// steps as it is made, when weights have their values, which a cell has not. So ask a net for the
/// first time behind some training steps.
template <int In, int Out>
struct spectral_norm_dense {
  parameter<Out, In> weight{initializer::fan_in_uniform(In)};
  parameter<Out> bias{initializer::fan_in_uniform(In)};
  state<Out> left{initializer::normal()};
  state<In> right{initializer::normal()};

  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    const cell_scope scope(x, *this);
    const auto w = spectral_norm({weight, at}, {left, at}, {right, at}, x.training() ? 1 : 0);
    if (x.training()) {
      assign(x, left, w.left, at);
      assign(x, right, w.right, at);
    }
    return matmul({x, at}, {w.value, at}, false, true) + operand(bias, at);
  }
};

}  // namespace nn
}  // namespace cella
