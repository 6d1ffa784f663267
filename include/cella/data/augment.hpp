// Changes of single images: f32 tensors [C,H,W] in place, for `map<column>(...)`.
//
//   train.map<0>(random_shift{.pixels = 2}).map<0>(gaussian_noise{.deviation = 0.1f})
//
// Amounts are checked with each image: `error` for one that is negative, too large or not a number.
#pragma once

#include <algorithm>
#include <array>
#include <cella/data/tensor.hpp>
#include <cella/graph/random.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

namespace cella::data {

/// One picture [C,H,W] that is changed in place.
using image_view = tensor_view<float>;

namespace detail {

inline std::string short_number(float x) {
  std::array<char, 32> digits{};
  std::snprintf(digits.data(), digits.size(), "%g", double{x});
  return digits.data();
}

/// Throws `error` unless 0 <= amount <= most. A NaN would spoil all images without a word.
inline void check_amount(const char* who, const char* option, float amount, float most = 1e6f) {
  if (amount >= 0 && amount <= most) return;
  throw error(std::string(who) + ": " + option + " is " + short_number(amount) + "; give 0 to " +
              short_number(most) + ".");
}

}  // namespace detail

/// (x - mean) / deviation. Throws `error` for a mean or a deviation by which nothing can be scaled.
struct normalise {
  float mean{};
  float deviation{1};

  constexpr float of(float x) const {
    check();
    return (x - mean) / deviation;
  }
  void operator()(image_view image) const {
    check();
    for (float& x : image) x = (x - mean) / deviation;
  }

  /// Throws `error` unless the mean is finite and the deviation positive and finite. Below the
  /// least normal number, quotients would overflow.
  constexpr void check() const {
    using limits = std::numeric_limits<float>;
    const bool scales = deviation >= limits::min() && deviation <= limits::max();
    if (!scales || !(mean >= limits::lowest() && mean <= limits::max())) refuse();
  }

 private:
  [[noreturn]] void refuse() const {
    throw error("normalise: the mean is " + detail::short_number(mean) + " and the deviation is " +
                detail::short_number(deviation) +
                "; give a finite mean and a positive, finite deviation.");
  }
};

/// Mean and standard deviation of the MNIST training images, scaled to [0, 1].
inline constexpr normalise mnist_scaling{.mean = 0.1307f, .deviation = 0.3081f};

/// The same with figures for each channel.
template <std::size_t Channels>
struct normalise_channels {
  std::array<float, Channels> mean{};
  std::array<float, Channels> deviation{};
  /// Throws `error` when the image has another number of channels.
  void operator()(image_view image) const;
};

/// Moves the image by up to `pixels` along both axes: padding followed by a random crop.
struct random_shift {
  int pixels = 2;
  /// The padding; `mnist_scaling.of(0)` for normalised MNIST.
  float fill{};
  void operator()(image_view image, generator& random) const;
};

/// Rotates, scales, shears and moves about the image's centre; samples bilinearly. Each amount is
/// uniform in [-x, x]. Outside of the image lies `fill`.
struct random_affine {
  float degrees = 10;
  /// Relative change of size, below 1.
  float scale = 0.1f;
  /// Horizontal pixels per vertical pixel.
  float shear = 0.1f;
  /// Pixels.
  float shift{};
  float fill{};
  void operator()(image_view image, generator& random) const;
};

/// Mirrors left and right with this probability.
struct random_flip {
  float probability = 0.5f;
  void operator()(image_view image, generator& random) const;
};

/// Adds independent normal noise to each pixel.
struct gaussian_noise {
  float deviation = 0.1f;
  void operator()(image_view image, generator& random) const {
    detail::check_amount("gaussian_noise", "deviation", deviation);
    for (std::size_t i = 0; i < image.size(); i += 2) {
      const auto [first, second] = random.normal_pair();
      image[i] += deviation * first;
      if (i + 1 < image.size()) image[i + 1] += deviation * second;
    }
  }
};

namespace detail {

/// Extents of an image, channels first.
struct image_extents {
  std::ptrdiff_t channels, height, width;
};

inline image_extents extents_of(const char* who, image_view image) {
  const shape& s = image.extents();
  if (s.rank != 3) {
    throw error(text(who) << ": the image has extents " << s
                          << ", but [C,H,W] is needed; reshape "
                             "it.");
  }
  return {s[0], s[1], s[2]};
}

/// A copy to read from while the image is written; each thread keeps its memory for the next one.
inline const float* saved(image_view image) {
  thread_local std::vector<float> copy;
  copy.assign(image.begin(), image.end());
  return copy.data();
}

}  // namespace detail

template <std::size_t Channels>
void normalise_channels<Channels>::operator()(image_view image) const {
  const auto [channels, height, width] = detail::extents_of("normalise_channels", image);
  if (channels != static_cast<std::ptrdiff_t>(Channels)) {
    throw error(text("normalise_channels: the image has ")
                << std::int64_t{channels} << " channels, but there are figures for " << Channels
                << "; give one mean and one deviation for each channel.");
  }
  for (std::size_t c = 0; c < Channels; ++c) {
    normalise{mean[c], deviation[c]}(image.row(static_cast<std::int64_t>(c)));
  }
}

inline void random_shift::operator()(image_view image, generator& random) const {
  const auto [channels, height, width] = detail::extents_of("random_shift", image);
  detail::check_amount("random_shift", "pixels", static_cast<float>(pixels));
  const auto choices = static_cast<std::uint32_t>(2 * pixels + 1);
  const std::ptrdiff_t down = std::ptrdiff_t{random.below(choices)} - pixels;
  const std::ptrdiff_t right = std::ptrdiff_t{random.below(choices)} - pixels;
  const float* from = detail::saved(image);
  std::fill(image.begin(), image.end(), fill);
  const std::ptrdiff_t first = std::max<std::ptrdiff_t>(0, right);
  const std::ptrdiff_t count = width - std::min(width, std::abs(right));
  for (std::ptrdiff_t c = 0; c < channels; ++c) {
    for (std::ptrdiff_t y = std::max<std::ptrdiff_t>(0, down);
         y < height + std::min<std::ptrdiff_t>(0, down); ++y) {
      const float* row = from + (c * height + y - down) * width + first - right;
      std::copy_n(row, count, image.data() + (c * height + y) * width + first);
    }
  }
}

inline void random_affine::operator()(image_view image, generator& random) const {
  const auto [channels, height, width] = detail::extents_of("random_affine", image);
  detail::check_amount("random_affine", "degrees", degrees);
  detail::check_amount("random_affine", "scale", scale, 0.99f);
  detail::check_amount("random_affine", "shear", shear);
  detail::check_amount("random_affine", "shift", shift);
  const float angle = random.uniform(-degrees, degrees) * std::numbers::pi_v<float> / 180;
  const float zoom = 1 / (1 + random.uniform(-scale, scale));
  const float slant = random.uniform(-shear, shear);
  const float right = random.uniform(-shift, shift);
  const float down = random.uniform(-shift, shift);
  // The map from the new image back to the old one: rotate, then shear, then scale.
  const float xx = zoom * (std::cos(angle) + slant * -std::sin(angle));
  const float xy = zoom * (std::sin(angle) + slant * std::cos(angle));
  const float yx = zoom * -std::sin(angle);
  const float yy = zoom * std::cos(angle);
  const float centre_x = static_cast<float>(width - 1) / 2;
  const float centre_y = static_cast<float>(height - 1) / 2;
  const float* from = detail::saved(image);
  for (std::ptrdiff_t y = 0; y < height; ++y) {
    for (std::ptrdiff_t x = 0; x < width; ++x) {
      const float u = static_cast<float>(x) - centre_x - right;
      const float v = static_cast<float>(y) - centre_y - down;
      const float old_x = xx * u + xy * v + centre_x;
      const float old_y = yx * u + yy * v + centre_y;
      const float left = std::floor(old_x);
      const float top = std::floor(old_y);
      const float a = old_x - left;
      const float b = old_y - top;
      const auto i = static_cast<std::ptrdiff_t>(left);
      const auto j = static_cast<std::ptrdiff_t>(top);
      for (std::ptrdiff_t c = 0; c < channels; ++c) {
        const auto pixel = [&](std::ptrdiff_t py, std::ptrdiff_t px) {
          const bool inside = py >= 0 && py < height && px >= 0 && px < width;
          return inside ? from[(c * height + py) * width + px] : fill;
        };
        const float upper = (1 - a) * pixel(j, i) + a * pixel(j, i + 1);
        const float lower = (1 - a) * pixel(j + 1, i) + a * pixel(j + 1, i + 1);
        image.data()[(c * height + y) * width + x] = (1 - b) * upper + b * lower;
      }
    }
  }
}

inline void random_flip::operator()(image_view image, generator& random) const {
  const auto [channels, height, width] = detail::extents_of("random_flip", image);
  detail::check_amount("random_flip", "probability", probability, 1);
  if (random.uniform() >= probability) return;
  for (std::ptrdiff_t row = 0; row < channels * height; ++row) {
    std::reverse(image.data() + row * width, image.data() + (row + 1) * width);
  }
}

}  // namespace cella::data
