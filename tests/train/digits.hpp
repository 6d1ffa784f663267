// A small net and data that it can learn, for the tests of models.
#pragma once

#include <cella/data/dataset.hpp>
#include <cella/graph/random.hpp>
#include <cella/nn/layers.hpp>
#include <cella/ops/activation.hpp>
#include <cella/train/model.hpp>
#include <cstdint>
#include <vector>

#include "support/scratch_directory.hpp"

namespace cella::test {

/// Two layers, batch norm and dropout: parameters, states and random state.
struct small_net {
  nn::dense<6, 8> first{};
  nn::batch_norm<8> norm{};
  nn::dropout drop{.rate = 0.25};
  nn::dense<8, 3> last{};
  constexpr var operator()(var x) const { return last(drop(relu(norm(first(x))))); }
};
/// The same without what differs between training and inference.
struct plain_net {
  nn::dense<6, 8> first{};
  nn::dense<8, 3> last{};
  constexpr var operator()(var x) const { return last(relu(first(x))); }
};

/// `n` samples of 6 numbers in three classes: one pair of numbers is larger than the others.
inline data::tensor_dataset<float, std::int32_t> three_classes(int n, std::uint64_t seed = 5) {
  std::vector<float> x;
  std::vector<std::int32_t> y;
  for (int i = 0; i < n; ++i) {
    const auto c = std::int32_t(std::uint64_t(i) * 7 % 3);
    for (int k = 0; k < 6; ++k) {
      x.push_back(uniform<float>(seed, std::uint64_t(i * 6 + k)) + (k / 2 == c ? 0.5f : 0.0f));
    }
    y.push_back(c);
  }
  return data::tensor_dataset(data::column<float>({n, 6}, x), data::column<std::int32_t>(y));
}

}  // namespace cella::test
