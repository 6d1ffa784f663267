// What is the same in every run, and how far single answers and batches differ.
// docs/reproducibility.md quotes this file.
#include <doctest/doctest.h>

#include <algorithm>
#include <cella/data/digits.hpp>
#include <cella/graph/random.hpp>
#include <cella/models/lenet.hpp>
#include <cella/train/model.hpp>
#include <cmath>
#include <span>
#include <vector>

using namespace cella;

namespace {

using Classifier =
    model<models::lenet5, image<1, 28, 28>, cross_entropy_loss{}, optim::sgd{.momentum = 0.9}>;

/// The weights after 100 images, of which the last batch has 4.
std::vector<float> trained_weights(int threads) {
  const auto images = data::digits(100, 1).to_memory();
  Classifier m({.seed = 7, .threads = threads});
  m.fit(images.shuffle(3), {.epochs = 1, .learning_rate = 0.05});
  const auto weights = m.parameters().values<float>("conv1.weight");
  return {weights.begin(), weights.end()};
}

/// The largest difference between two answers as a share of the largest number in them.
double distance(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  double largest = 0, most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, double(std::abs(a[i])));
    most = std::max(most, double(std::abs(a[i] - b[i])));
  }
  REQUIRE(largest > 0);
  return most / largest;
}

}  // namespace

TEST_CASE("the same seed gives the same weights, with one thread and with three") {
  const auto weights = trained_weights(1);
  CHECK(trained_weights(1) == weights);
  CHECK(trained_weights(3) == weights);
}

TEST_CASE("an answer alone and the same in a batch differ by rounding") {
  Classifier m({.seed = 7});
  constexpr std::int64_t count = 50;
  std::vector<float> pixels(count * 784);
  generator random(11);
  for (float& p : pixels) p = float(random.uniform());
  const auto together = m.predict(pixels.data(), count);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto alone = m.predict(pixels.data() + 784 * i, 1);
    const std::span<const float> in_batch(together.data() + 10 * i, 10);
    CHECK(distance({alone.data(), 10}, in_batch) < 2e-6);
  }
}
