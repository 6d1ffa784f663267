// A multilayer perceptron of any widths.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/ops/activation.hpp>

namespace cella::models {

/// Dense layers with ReLU between them, none after the last: [N, In] -> [N, last width].
/// `mlp<784, 128, 10>` has one hidden layer; paths are `layer.weight`, `rest.layer.weight`, ...
template <int In, int Out, int... More>
struct mlp {
  nn::dense<In, Out> layer{};
  mlp<Out, More...> rest{};

  constexpr var operator()(var x) const { return rest(relu(layer(x))); }
};
template <int In, int Out>
struct mlp<In, Out> {
  nn::dense<In, Out> layer{};

  constexpr var operator()(var x) const { return layer(x); }
};

}  // namespace cella::models
