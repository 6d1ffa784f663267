// LeNet-5 with ReLU and max pooling.  LeCun et al. 1998
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/pooling.hpp>

namespace cella::models {

/// Digits [N,1,28,28] -> logits [N,10]; 61,706 parameters.
struct lenet5 {
  nn::conv2d<1, 6, 5> conv1{.padding = 2};
  nn::conv2d<6, 16, 5> conv2{};
  nn::dense<400, 120> fc1{};
  nn::dense<120, 84> fc2{};
  nn::dense<84, 10> fc3{};

  constexpr var operator()(var x) const {
    x = max_pool(relu(conv1(x)), 2);
    x = max_pool(relu(conv2(x)), 2);
    x = relu(fc2(relu(fc1(flatten(x)))));
    return fc3(x);
  }
};

}  // namespace cella::models
