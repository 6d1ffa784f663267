#include <doctest/doctest.h>

#include <algorithm>
#include <cella/data/augment.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

using namespace cella;
using namespace cella::data;

namespace {

struct image {
  shape extents;
  std::vector<float> values;
  explicit image(const shape& s) : extents(s), values(static_cast<std::size_t>(s.size())) {
    std::iota(values.begin(), values.end(), 1.f);
  }
  image_view view() { return {values.data(), extents}; }
};

}  // namespace

TEST_CASE("normalise subtracts the mean and divides by the deviation") {
  image x({1, 1, 3});
  normalise{.mean = 2, .deviation = 0.5f}(x.view());
  CHECK(x.values == std::vector<float>{-2, 0, 2});
  image y({2, 1, 2});
  normalise_channels<2>{.mean = {1, 3}, .deviation = {1, 2}}(y.view());
  CHECK(y.values == std::vector<float>{0, 1, 0, .5f});
  CHECK_THROWS_AS(normalise_channels<3>{}(y.view()), error);
}

TEST_CASE("a mean or a deviation by which nothing can be scaled is refused, and images stay") {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float infinity = std::numeric_limits<float>::infinity();
  image x({2, 1, 3});
  const auto before = x.values;
  for (const float deviation : {0.f, -0.f, -1.f, nan, infinity, -infinity, 1e-40f}) {
    CAPTURE(deviation);
    CHECK_THROWS_AS(normalise{.deviation = deviation}(x.view()), error);
    CHECK_THROWS_AS(normalise{.deviation = deviation}.of(1), error);
    CHECK_THROWS_AS(normalise_channels<2>({.deviation = {deviation, 1}})(x.view()), error);
  }
  for (const float mean : {nan, infinity})
    CHECK_THROWS_AS(normalise{.mean = mean}(x.view()), error);
  CHECK(x.values == before);
  CHECK_THROWS_WITH_AS(normalise({.mean = 0.5f, .deviation = -2}).check(),
                       "normalise: the mean is 0.5 and the deviation is -2; give a finite mean and "
                       "a positive, finite deviation.",
                       error);
}

TEST_CASE("amounts that are negative, too large or not a number are refused with their names") {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  image x({1, 4, 4});
  const auto before = x.values;
  generator random(1);
  const auto refused = [&](const auto& change, const char* said) {
    CHECK_THROWS_WITH_AS(change(x.view(), random), said, error);
  };
  refused(random_shift{.pixels = -1}, "random_shift: pixels is -1; give 0 to 1e+06.");
  refused(random_shift{.pixels = 2147483647},
          "random_shift: pixels is 2.14748e+09; give 0 to 1e+06.");
  refused(random_affine{.degrees = nan}, "random_affine: degrees is nan; give 0 to 1e+06.");
  refused(random_affine{.scale = 1}, "random_affine: scale is 1; give 0 to 0.99.");
  refused(random_affine{.shear = -1}, "random_affine: shear is -1; give 0 to 1e+06.");
  refused(random_affine{.shift = nan}, "random_affine: shift is nan; give 0 to 1e+06.");
  refused(random_flip{.probability = nan}, "random_flip: probability is nan; give 0 to 1.");
  refused(random_flip{.probability = 1.5f}, "random_flip: probability is 1.5; give 0 to 1.");
  refused(gaussian_noise{.deviation = -1}, "gaussian_noise: deviation is -1; give 0 to 1e+06.");
  CHECK(x.values == before);
}

TEST_CASE("random_shift moves all channels by one offset and pads with fill") {
  std::set<std::pair<int, int>> offsets;
  for (std::uint64_t key = 0; key < 400; ++key) {
    image x({2, 4, 5});
    const auto before = x.values;
    generator random(key);
    random_shift{.pixels = 2, .fill = -1}(x.view(), random);
    // Exactly one offset explains every pixel.
    int explanations = 0;
    for (int down = -2; down <= 2; ++down) {
      for (int right = -2; right <= 2; ++right) {
        bool fits = true;
        for (int c = 0; c < 2; ++c) {
          for (int v = 0; v < 4; ++v) {
            for (int u = 0; u < 5; ++u) {
              const int oy = v - down, ox = u - right;
              const bool inside = oy >= 0 && oy < 4 && ox >= 0 && ox < 5;
              const float expected = inside ? before[std::size_t((c * 4 + oy) * 5 + ox)] : -1;
              fits &= x.values[std::size_t((c * 4 + v) * 5 + u)] == expected;
            }
          }
        }
        if (fits) {
          ++explanations;
          offsets.insert({down, right});
        }
      }
    }
    CHECK(explanations == 1);
  }
  CHECK(offsets.size() == 25);
}

TEST_CASE("a shift by more than the image leaves the fill alone") {
  for (std::uint64_t key = 0; key < 50; ++key) {
    image x({1, 2, 2});
    generator random(key);
    random_shift{.pixels = 7}(x.view(), random);
    CHECK(std::ranges::all_of(x.values, [](float v) { return v >= 0 && v <= 4; }));
  }
}

TEST_CASE("random_affine without amounts is the identity") {
  image x({3, 5, 4});
  const auto before = x.values;
  generator random(1);
  random_affine{.degrees = 0, .scale = 0, .shear = 0}(x.view(), random);
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(x.values[i] == doctest::Approx(before[i]));
}

TEST_CASE("a rotation keeps the centre and what is constant on circles around it") {
  image x({1, 21, 21});
  const auto bump = [](int v, int u) {
    return std::exp(-float((v - 10) * (v - 10) + (u - 10) * (u - 10)) / 20);
  };
  for (int v = 0; v < 21; ++v) {
    for (int u = 0; u < 21; ++u) x.values[std::size_t(v * 21 + u)] = bump(v, u);
  }
  generator random(3);
  random_affine{.degrees = 90, .scale = 0, .shear = 0}(x.view(), random);
  for (int v = 3; v < 18; ++v) {
    for (int u = 3; u < 18; ++u) {
      CHECK(std::abs(x.values[std::size_t(v * 21 + u)] - bump(v, u)) < 0.03f);
    }
  }
}

TEST_CASE("a rotation turns a bar as far as the generator says") {
  constexpr int n = 41;
  constexpr int centre = 20;
  for (std::uint64_t key = 0; key < 10; ++key) {
    image x({1, n, n});
    std::fill(x.values.begin(), x.values.end(), 0.f);
    for (int u = 5; u < 36; ++u) x.values[centre * n + std::size_t(u)] = 1;
    generator random(key);
    random_affine{.degrees = 40, .scale = 0, .shear = 0}(x.view(), random);
    generator same(key);
    const double told = double(same.uniform(-40.f, 40.f)) * std::acos(-1.0) / 180;
    // The principal axis from the second moments.
    double uu = 0, uv = 0, vv = 0;
    for (int v = 0; v < n; ++v) {
      for (int u = 0; u < n; ++u) {
        const double w = double(x.values[std::size_t(v * n + u)]);
        uu += w * (u - centre) * (u - centre);
        uv += w * (u - centre) * (v - centre);
        vv += w * (v - centre) * (v - centre);
      }
    }
    CHECK(0.5 * std::atan2(2 * uv, uu - vv) == doctest::Approx(told).epsilon(0.02));
  }
}

TEST_CASE("random_flip mirrors each row, as often as it is told") {
  int flipped = 0;
  for (std::uint64_t key = 0; key < 1000; ++key) {
    image x({2, 2, 3});
    generator random(key);
    random_flip{.probability = 0.25f}(x.view(), random);
    if (x.values[0] == 3) {
      CHECK(x.values == std::vector<float>{3, 2, 1, 6, 5, 4, 9, 8, 7, 12, 11, 10});
      ++flipped;
    } else {
      CHECK(x.values[0] == 1);
    }
  }
  CHECK(flipped > 200);
  CHECK(flipped < 300);
}

TEST_CASE("gaussian_noise has the deviation that was asked for") {
  image x({1, 100, 100});
  std::fill(x.values.begin(), x.values.end(), 5.f);
  generator random(1);
  gaussian_noise{.deviation = 0.5f}(x.view(), random);
  double sum = 0, squares = 0;
  for (float v : x.values) {
    sum += double(v) - 5;
    squares += (double(v) - 5) * (double(v) - 5);
  }
  CHECK(std::abs(sum / 1e4) < 0.02);
  CHECK(std::sqrt(squares / 1e4) == doctest::Approx(0.5).epsilon(0.03));
}

TEST_CASE("an image without channels is refused with its extents") {
  image x({4, 4});
  generator random(1);
  CHECK_THROWS_WITH_AS(random_shift{}(x.view(), random),
                       doctest::Contains("random_shift: the image has extents [4,4]"), error);
}
