#pragma once
#include <cella/nn/layers.hpp>
#include <cella/ops/activation.hpp>
#include <cella/train/model.hpp>

struct HouseNet {
  cella::nn::dense<3, 32> first;
  cella::nn::dense<32, 32> second;
  cella::nn::dense<32, 1> last;

  constexpr cella::var operator()(cella::var house) const {
    cella::var x = house / constant(house, {5.f, 100.f, 50.f});
    x = relu(first(x));
    x = relu(second(x));
    return 100 * softplus(last(x));
  }
};

inline constexpr auto relative_error = [](cella::var predicted, cella::var price) {
  return mean(abs(predicted - price) / price);
};

using HouseModel = cella::model<HouseNet, cella::features<3>, relative_error, cella::optim::adam{}>;
