// Nets of which the golden files hold training runs, without the names of their parameters.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/pooling.hpp>

namespace cella::test {

/// `residual`: convolution, batch norm, one residual block. Its eight channels fill the lanes of
/// double precision.
struct residual_net {
  nn::conv2d<3, 8, 3, false> c{.padding = 1};
  nn::batch_norm<8> b{};
  nn::conv2d<8, 8, 3, false> c1{.padding = 1};
  nn::batch_norm<8> b1{};
  nn::dense<8, 5> f{};

  constexpr var operator()(var x) const {
    x = relu(b(c(x)));
    x = relu(x + b1(c1(x)));
    return f(global_average_pool(x));
  }
};

}  // namespace cella::test
