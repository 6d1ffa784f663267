#include <doctest/doctest.h>

#include <algorithm>
#include <cella/data/digits.hpp>
#include <cmath>
#include <cstdint>
#include <vector>

using namespace cella;
using namespace cella::data;

namespace {

constexpr std::size_t pixels = digit_extent * digit_extent;
constexpr std::size_t classes = 10;

/// Accuracy on `test` of a softmax regression trained on `train` by plain gradient descent.
double linear_accuracy(const tensor_dataset<float, std::int32_t>& train,
                       const tensor_dataset<float, std::int32_t>& test) {
  std::vector<float> w((pixels + 1) * classes, 0.f);
  const auto scores_of = [&](const float* x) {
    std::array<float, classes> s{};
    for (std::size_t k = 0; k < classes; ++k) s[k] = w[pixels * classes + k];
    for (std::size_t i = 0; i < pixels; ++i) {
      for (std::size_t k = 0; k < classes; ++k) s[k] += x[i] * w[i * classes + k];
    }
    return s;
  };
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (auto& b : train.shuffle(1).batch(1).epoch(epoch)) {
      const float* x = b.column<0>().data();
      auto s = scores_of(x);
      const float most = *std::ranges::max_element(s);
      float sum = 0;
      for (float& v : s) sum += v = std::exp(v - most);
      for (std::size_t k = 0; k < classes; ++k) {
        s[k] = 1e-3f * (s[k] / sum - float(std::int32_t(k) == b.column<1>()[0]));
      }
      for (std::size_t i = 0; i < pixels; ++i) {
        for (std::size_t k = 0; k < classes; ++k) w[i * classes + k] -= x[i] * s[k];
      }
      for (std::size_t k = 0; k < classes; ++k) w[pixels * classes + k] -= s[k];
    }
  }
  int right = 0;
  for (std::int64_t i = 0; i < test.size(); ++i) {
    const auto s = scores_of(test.column<0>().row(i).data());
    right += std::ranges::max_element(s) - s.begin() == test.column<1>()[std::size_t(i)];
  }
  return double(right) / double(test.size());
}

}  // namespace

TEST_CASE("a digit depends on seed and index, not on the others or the epoch") {
  const auto all = digits(50, 3).to_memory();
  const auto later = digits(1000, 3).skip(20).take(10).to_memory(7);
  CHECK(std::ranges::equal(all.column<0>().row(25), later.column<0>().row(5)));
  CHECK(all.column<1>()[25] == later.column<1>()[5]);
  const auto other = digits(50, 4).to_memory();
  CHECK_FALSE(std::ranges::equal(all.column<0>(), other.column<0>()));
}

TEST_CASE("digits have MNIST's form, its range and all labels") {
  const auto d = digits(5000, 1).to_memory();
  CHECK(d.column<0>().extents() == shape{5000, 1, 28, 28});
  CHECK(d.column<1>().extents() == shape{5000});
  const auto [low, high] = std::ranges::minmax(d.column<0>());
  CHECK(low == mnist_scaling.of(0));
  CHECK(high <= mnist_scaling.of(1));
  CHECK(high > mnist_scaling.of(0.95f));
  for (std::int32_t label = 0; label < 10; ++label) {
    const auto n = std::ranges::count(d.column<1>(), label);
    CHECK(n > 400);
    CHECK(n < 600);
  }
}

TEST_CASE("every variant of every digit leaves ink inside the image and none on its rim") {
  const digit_style calm{.noise = 0, .scaling = {}};
  for (int digit = 0; digit < 10; ++digit) {
    CAPTURE(digit);
    double rim = 0, ink = 0;
    for (std::uint64_t i = 0; i < 200; ++i) {
      std::array<float, pixels> image{};
      generator random(1, i);
      draw_digit(digit, calm, random, image);
      for (std::size_t p = 0; p < pixels; ++p) {
        const auto y = p / digit_extent, x = p % digit_extent;
        (y == 0 || x == 0 || y == 27 || x == 27 ? rim : ink) += double(image[p]) / 200;
      }
    }
    // MNIST's training images have 102 units of ink on average.
    CHECK(ink > 25);
    CHECK(ink < 160);
    CHECK(rim < 1);
  }
}

TEST_CASE("a linear classifier learns the digits, but not well") {
  const auto accuracy = linear_accuracy(digits(3000, 1).to_memory(), digits(1000, 2).to_memory());
  CAPTURE(accuracy);
  CHECK(accuracy > 0.70);
  CHECK(accuracy < 0.92);
}

TEST_CASE("a negative count is refused") { CHECK_THROWS_AS(digits(-1), error); }

TEST_CASE("a style that cannot be drawn is refused") {
  CHECK_THROWS_WITH_AS(digits(1, 0, {.rotation = std::nanf("")}),
                       "digits: rotation is nan; give 0 to 1e+06.", error);
  CHECK_THROWS_AS(digits(1, 0, {.tremor = 1e30f}), error);
  CHECK_THROWS_WITH_AS(digits(1, 0, {.scaling = {.deviation = 0}}),
                       doctest::Contains("the deviation is 0"), error);
}
