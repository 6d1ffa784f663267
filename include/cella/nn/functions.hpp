// Functions that take and return functions: nets put together from parts.
#pragma once

#include <array>
#include <cella/ops/elementwise.hpp>
#include <tuple>
#include <utility>
#include <vector>

namespace cella {

// What follows keeps a function that is handed over by name as a reference, since a cell has to
// stay where its parameters are bound; temporaries, such as lambdas, move in.

/// x -> f(g(h(x))): the last function comes first.
template <class F, class... More>
constexpr auto compose(F&& f, More&&... more) {
  if constexpr (sizeof...(More) == 0) {
    return [f = std::tuple<F>(std::forward<F>(f))](auto... x) { return std::get<0>(f)(x...); };
  } else {
    return [f = std::tuple<F>(std::forward<F>(f)), inner = compose(std::forward<More>(more)...)](
               auto... x) { return std::get<0>(f)(inner(x...)); };
  }
}

/// x -> x + f(x). The result of f has the shape of x.
template <class F>
constexpr auto residual(F&& f) {
  return [f = std::tuple<F>(std::forward<F>(f))](var x) { return x + std::get<0>(f)(x); };
}

/// The layers of an array, a vector or a tuple one after another on x: the first comes first.
template <class Layers>
constexpr var map_layers(const Layers& layers, var x) {
  if constexpr (requires { layers.begin(); }) {
    for (const auto& layer : layers) x = layer(x);
  } else {
    std::apply([&x](const auto&... layer) { ((x = layer(x)), ...); }, layers);
  }
  return x;
}

namespace nn {

/// Layers one after another, as a cell: `sequential<dense<4, 8>, dense<8, 3>>`. Their paths are
/// `layers.0.weight` and so on. Functions without parameters may stand between them:
/// `sequential net{std::tuple{dense<4, 8>{}, [](var x) { return relu(x); }, dense<8, 3>{}}}`.
template <class... Layers>
struct sequential {
  std::tuple<Layers...> layers{};

  constexpr var operator()(var x) const { return map_layers(layers, x); }
};
template <class... Layers>
sequential(std::tuple<Layers...>) -> sequential<Layers...>;

}  // namespace nn

}  // namespace cella
