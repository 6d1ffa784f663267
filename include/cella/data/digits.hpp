// A generated data set of handwritten-looking digits, for programs that must run without a file.
// Sample i depends only on the seed and on i.
#pragma once

#include <algorithm>
#include <array>
#include <cella/data/augment.hpp>
#include <cella/data/dataset.hpp>
#include <cella/graph/random.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <span>

namespace cella::data {

/// How much the digits vary. The defaults leave a linear classifier well below a small
/// convolutional net, as MNIST does.
struct digit_style {
  /// Standard deviation of the rotation in degrees; at most twice as much occurs.
  float rotation = 7;
  /// Standard deviation of the slant: horizontal per vertical distance.
  float slant = 0.16f;
  /// Relative standard deviation of width and height.
  float size = 0.09f;
  /// Largest move in pixels along both axes.
  float shift = 2;
  /// Amplitude of the smooth distortion, relative to the height of a digit.
  float distortion = 0.042f;
  /// Standard deviation of each control point, relative to the height of a digit.
  float tremor = 0.022f;
  /// Largest standard deviation of a pixel's noise; white is 1.
  float noise = 0.08f;
  /// Applied to pixels in [0, 1].
  normalise scaling = mnist_scaling;

  /// Throws `error` for an amount that is negative, too large or not a number.
  void check() const {
    detail::check_amount("digits", "rotation", rotation);
    detail::check_amount("digits", "slant", slant);
    detail::check_amount("digits", "size", size);
    detail::check_amount("digits", "shift", shift);
    detail::check_amount("digits", "distortion", distortion);
    detail::check_amount("digits", "tremor", tremor);
    detail::check_amount("digits", "noise", noise);
    scaling.check();
  }
};

/// Height and width of a drawn digit, in pixels.
inline constexpr int digit_extent = 28;

/// Draws `digit` (0 to 9) in one of its variants, white (1) on black (0), before scaling.
void draw_digit(int digit, const digit_style& style, generator& random,
                std::span<float, digit_extent * digit_extent> image);

/// `count` digits: images f32 [1,28,28] and labels i32, drawn when they are read.
/// `digits(20000, seed).to_memory()` draws them once.
class digits : public composable<digits> {
 public:
  using sample = data::sample<float, std::int32_t>;

  explicit digits(std::int64_t count, std::uint64_t seed = 0, const digit_style& style = {})
      : count_(count), seed_(seed), style_(style) {
    if (count < 0) throw error(text("digits: the count is ") << count << "; give 0 or more.");
    style.check();
  }

  std::int64_t size() const { return count_; }
  sample_shapes<2> shapes() const { return {shape{1, digit_extent, digit_extent}, shape{}}; }
  void read(position at, const sample& out) const {
    generator random(seed_, static_cast<std::uint64_t>(at.index));
    const auto digit = static_cast<std::int32_t>(random.below(10));
    const auto image = out.column<0>();
    draw_digit(digit, style_, random,
               std::span<float, digit_extent * digit_extent>(image.data(), image.size()));
    style_.scaling(image);
    out.column<1>()[0] = digit;
  }

 private:
  std::int64_t count_;
  std::uint64_t seed_;
  digit_style style_;
};

namespace detail {

struct point {
  float x{}, y{};
};

/// Strokes of one way to write a digit: points in a unit box, y down, joined by smooth curves; a
/// negative x lifts the pen. A corner is made by lifting the pen and going on from the same place.
using glyph = std::span<const point>;

inline constexpr point lift{-1, -1};

// clang-format off
inline constexpr point zero_a[]{{.50f,.02f},{.22f,.16f},{.12f,.50f},{.22f,.84f},{.50f,.98f},{.78f,.84f},{.88f,.50f},{.78f,.16f},{.48f,.02f}};
inline constexpr point zero_b[]{{.62f,.06f},{.34f,.12f},{.20f,.50f},{.30f,.88f},{.54f,.96f},{.76f,.76f},{.80f,.40f},{.66f,.10f},{.40f,.04f}};
inline constexpr point zero_c[]{{.72f,.16f},{.50f,.02f},{.20f,.22f},{.08f,.58f},{.24f,.92f},{.56f,.96f},{.86f,.72f},{.92f,.36f},{.74f,.10f},{.58f,.08f}};
inline constexpr point one_a[]{{.52f,.0f},{.50f,.5f},{.49f,1.f}};
inline constexpr point one_b[]{{.30f,.24f},{.44f,.14f},{.56f,.0f},lift,{.56f,.0f},{.54f,.5f},{.52f,1.f}};
inline constexpr point one_c[]{{.30f,.22f},{.42f,.14f},{.54f,.0f},lift,{.54f,.0f},{.53f,.5f},{.52f,.98f},lift,{.26f,.98f},{.52f,.97f},{.80f,.98f}};
inline constexpr point two_a[]{{.14f,.26f},{.28f,.06f},{.58f,.0f},{.80f,.16f},{.76f,.42f},{.48f,.70f},{.12f,.96f},lift,{.12f,.96f},{.50f,.95f},{.90f,.97f}};
inline constexpr point two_b[]{{.16f,.20f},{.38f,.02f},{.70f,.06f},{.80f,.28f},{.64f,.58f},{.36f,.86f},{.16f,.94f},{.12f,.82f},{.28f,.76f},{.54f,.88f},{.92f,.94f}};
inline constexpr point two_c[]{{.20f,.10f},{.50f,.0f},{.76f,.14f},{.74f,.40f},{.44f,.72f},{.16f,.94f},lift,{.16f,.94f},{.40f,.86f},{.64f,.96f},{.88f,.88f}};
inline constexpr point three_a[]{{.16f,.12f},{.44f,.0f},{.74f,.08f},{.76f,.30f},{.42f,.46f},lift,{.42f,.46f},{.78f,.56f},{.84f,.80f},{.56f,.99f},{.14f,.90f}};
inline constexpr point three_b[]{{.16f,.04f},{.48f,.03f},{.82f,.03f},lift,{.82f,.03f},{.62f,.22f},{.42f,.42f},lift,{.42f,.42f},{.76f,.48f},{.86f,.74f},{.60f,.98f},{.16f,.92f}};
inline constexpr point three_c[]{{.18f,.14f},{.50f,.0f},{.78f,.12f},{.70f,.38f},{.46f,.48f},{.40f,.44f},{.54f,.44f},{.82f,.60f},{.80f,.86f},{.50f,1.f},{.14f,.84f}};
inline constexpr point four_a[]{{.24f,.0f},{.16f,.30f},{.10f,.56f},lift,{.10f,.56f},{.46f,.57f},{.90f,.54f},lift,{.74f,.06f},{.70f,.50f},{.66f,1.f}};
inline constexpr point four_b[]{{.66f,.0f},{.36f,.34f},{.06f,.66f},lift,{.06f,.66f},{.48f,.66f},{.94f,.64f},lift,{.66f,.0f},{.66f,.50f},{.65f,1.f}};
inline constexpr point four_c[]{{.20f,.02f},{.14f,.30f},{.26f,.50f},{.54f,.52f},{.78f,.40f},lift,{.82f,.02f},{.76f,.44f},{.70f,1.f}};
inline constexpr point five_a[]{{.82f,.03f},{.54f,.03f},{.26f,.04f},lift,{.26f,.04f},{.22f,.24f},{.20f,.43f},lift,{.20f,.43f},{.50f,.35f},{.80f,.48f},{.84f,.76f},{.56f,.98f},{.12f,.90f}};
inline constexpr point five_b[]{{.88f,.02f},{.56f,.03f},{.30f,.10f},{.22f,.32f},{.44f,.44f},{.74f,.56f},{.78f,.80f},{.52f,.98f},{.12f,.90f}};
inline constexpr point five_c[]{{.30f,.08f},{.26f,.26f},{.24f,.42f},lift,{.24f,.42f},{.56f,.38f},{.76f,.58f},{.68f,.86f},{.42f,.98f},{.12f,.88f},lift,{.30f,.08f},{.60f,.06f},{.92f,.0f}};
inline constexpr point six_a[]{{.70f,.02f},{.38f,.18f},{.16f,.54f},{.22f,.86f},{.50f,.98f},{.78f,.84f},{.76f,.62f},{.50f,.53f},{.20f,.70f}};
inline constexpr point six_b[]{{.50f,.0f},{.28f,.34f},{.16f,.72f},{.38f,.97f},{.70f,.90f},{.74f,.68f},{.48f,.58f},{.22f,.78f}};
inline constexpr point six_c[]{{.78f,.10f},{.56f,.02f},{.28f,.22f},{.12f,.58f},{.24f,.90f},{.54f,.98f},{.80f,.80f},{.70f,.58f},{.42f,.58f},{.18f,.80f}};
inline constexpr point seven_a[]{{.10f,.07f},{.48f,.06f},{.88f,.04f},lift,{.88f,.04f},{.60f,.46f},{.42f,1.f}};
inline constexpr point seven_b[]{{.12f,.06f},{.48f,.06f},{.86f,.04f},lift,{.86f,.04f},{.60f,.48f},{.40f,1.f},lift,{.30f,.52f},{.54f,.50f},{.80f,.48f}};
inline constexpr point seven_c[]{{.12f,.24f},{.14f,.14f},{.14f,.04f},lift,{.14f,.04f},{.50f,.08f},{.86f,.04f},lift,{.86f,.04f},{.70f,.50f},{.62f,1.f}};
inline constexpr point eight_a[]{{.72f,.14f},{.48f,.0f},{.22f,.14f},{.32f,.38f},{.60f,.54f},{.80f,.76f},{.62f,.97f},{.34f,.96f},{.20f,.76f},{.42f,.52f},{.66f,.36f},{.76f,.16f},{.62f,.04f}};
inline constexpr point eight_b[]{{.50f,.0f},{.26f,.10f},{.28f,.36f},{.50f,.46f},{.72f,.36f},{.74f,.10f},{.48f,.0f},lift,{.50f,.46f},{.20f,.62f},{.18f,.88f},{.50f,1.f},{.82f,.88f},{.80f,.62f},{.48f,.46f}};
inline constexpr point eight_c[]{{.80f,.04f},{.50f,.04f},{.28f,.18f},{.40f,.42f},{.64f,.58f},{.74f,.80f},{.52f,.99f},{.26f,.88f},{.30f,.66f},{.56f,.42f},{.80f,.08f}};
inline constexpr point nine_a[]{{.80f,.18f},{.52f,.02f},{.22f,.16f},{.22f,.40f},{.48f,.50f},{.74f,.36f},{.80f,.16f},lift,{.80f,.16f},{.78f,.56f},{.72f,1.f}};
inline constexpr point nine_b[]{{.78f,.20f},{.52f,.02f},{.24f,.14f},{.20f,.38f},{.46f,.50f},{.72f,.36f},{.80f,.14f},lift,{.80f,.14f},{.82f,.56f},{.62f,.92f},{.22f,.94f}};
inline constexpr point nine_c[]{{.74f,.08f},{.44f,.04f},{.18f,.26f},{.30f,.48f},{.60f,.42f},{.80f,.10f},lift,{.80f,.10f},{.64f,.52f},{.46f,1.f}};

inline constexpr std::array<std::array<glyph, 3>, 10> glyphs{{
    {zero_a, zero_b, zero_c},    {one_a, one_b, one_c},       {two_a, two_b, two_c},
    {three_a, three_b, three_c}, {four_a, four_b, four_c},    {five_a, five_b, five_c},
    {six_a, six_b, six_c},       {seven_a, seven_b, seven_c}, {eight_a, eight_b, eight_c},
    {nine_a, nine_b, nine_c}}};
// clang-format on

/// A writer's hand: a smooth displacement of the plane, then an affine map into pixels.
class hand {
 public:
  hand(const digit_style& style, generator& random) {
    const auto bounded = [&](float deviation) {
      return deviation * std::clamp(random.normal(), -2.f, 2.f);
    };
    for (wave& w : waves_) {
      const float direction = random.uniform(0.f, 2 * std::numbers::pi_v<float>);
      const float frequency = random.uniform(2.f, 8.f);
      w = {frequency * std::cos(direction),
           frequency * std::sin(direction),
           random.uniform(0.f, 2 * std::numbers::pi_v<float>),
           {bounded(style.distortion), bounded(style.distortion)}};
    }
    const float angle = bounded(style.rotation) * std::numbers::pi_v<float> / 180;
    const float slant = bounded(style.slant) + style.slant / 2;
    const float width = 14 * (1 + bounded(2 * style.size));
    const float height = 19 * (1 + bounded(style.size));
    const float c = std::cos(angle);
    const float s = std::sin(angle);
    xx_ = width * c;
    xy_ = -height * (slant * c + s);
    yx_ = width * s;
    yy_ = height * (c - slant * s);
    constexpr float centre = (digit_extent - 1) / 2.f;
    origin_ = {centre + random.uniform(-style.shift, style.shift),
               centre + random.uniform(-style.shift, style.shift)};
  }

  /// From the unit box to pixels.
  point operator()(point p) const {
    point moved = p;
    for (const wave& w : waves_) {
      const float amount = std::sin(w.x * p.x + w.y * p.y + w.phase);
      moved.x += w.amplitude.x * amount;
      moved.y += w.amplitude.y * amount;
    }
    moved = {moved.x - .5f, moved.y - .5f};
    return {origin_.x + xx_ * moved.x + xy_ * moved.y, origin_.y + yx_ * moved.x + yy_ * moved.y};
  }

 private:
  struct wave {
    float x{}, y{}, phase{};
    point amplitude;
  };
  std::array<wave, 3> waves_{};
  float xx_{}, xy_{}, yx_{}, yy_{};
  point origin_;
};

/// Signed distances of the pixels to the ink, in pixels; positive outside.
class sheet {
 public:
  sheet() { distance_.fill(far); }

  /// A straight line whose half-width goes from `ra` to `rb`.
  void line(point a, point b, float ra, float rb) {
    const float reach = std::max(ra, rb) + far;
    const auto clip = [](float v) {
      return static_cast<int>(std::clamp(v, 0.f, digit_extent - 1.f));
    };
    const int x0 = clip(std::ceil(std::min(a.x, b.x) - reach));
    const int x1 = clip(std::floor(std::max(a.x, b.x) + reach));
    const int y0 = clip(std::ceil(std::min(a.y, b.y) - reach));
    const int y1 = clip(std::floor(std::max(a.y, b.y) + reach));
    const point d{b.x - a.x, b.y - a.y};
    const float inverse = 1 / std::max(d.x * d.x + d.y * d.y, 1e-9f);
    for (int y = y0; y <= y1; ++y) {
      float* row = distance_.data() + y * digit_extent;
      for (int x = x0; x <= x1; ++x) {
        const point p{static_cast<float>(x) - a.x, static_cast<float>(y) - a.y};
        const float t = std::min(std::max((p.x * d.x + p.y * d.y) * inverse, 0.f), 1.f);
        const point q{p.x - t * d.x, p.y - t * d.y};
        const float distance = std::sqrt(q.x * q.x + q.y * q.y) - (ra + t * (rb - ra));
        row[x] = std::min(row[x], distance);
      }
    }
  }

  float distance(std::size_t pixel) const { return distance_[pixel]; }

 private:
  static constexpr float far = 1.5f;
  std::array<float, digit_extent * digit_extent> distance_;
};

/// Catmull and Rom's spline through b and c, at t in [0, 1].
constexpr point spline(point a, point b, point c, point d, float t) {
  const auto one = [t](float p, float q, float r, float s) {
    return q + .5f * t * (r - p + t * (2 * p - 5 * q + 4 * r - s + t * (3 * (q - r) + s - p)));
  };
  return {one(a.x, b.x, c.x, d.x), one(a.y, b.y, c.y, d.y)};
}

}  // namespace detail

[[gnu::cold]] inline void draw_digit(int digit, const digit_style& style, generator& random,
                                     std::span<float, digit_extent * digit_extent> image) {
  using detail::point;
  style.check();
  const detail::glyph way = detail::glyphs[static_cast<std::size_t>(digit)][random.below(3)];
  const detail::hand hand(style, random);
  const float radius = 1.15f * std::exp(.28f * std::clamp(random.normal(), -2.f, 2.f));
  const float pressure = random.uniform(0.f, .25f);
  const float rhythm = random.uniform(2.f, 6.f);
  const auto half_width = [&](float along) {
    return radius * (1 + pressure * std::sin(rhythm * along));
  };

  detail::sheet sheet;
  constexpr std::size_t most_points = 16;
  std::array<point, most_points> stroke{};
  float along = random.uniform(0.f, 6.f);
  for (std::size_t next = 0; next < way.size();) {
    std::size_t n = 0;
    for (; next < way.size() && way[next].x >= 0; ++next) {
      const auto [dx, dy] = random.normal_pair();
      stroke[n++] = {way[next].x + style.tremor * dx, way[next].y + style.tremor * dy};
    }
    ++next;
    point last = hand(stroke[0]);
    for (std::size_t i = 0; i + 1 < n; ++i) {
      const point& before = stroke[i ? i - 1 : 0];
      const point& after = stroke[std::min(i + 2, n - 1)];
      constexpr int pieces = 6;
      for (int piece = 1; piece <= pieces; ++piece) {
        const float t = static_cast<float>(piece) / pieces;
        const point here = hand(detail::spline(before, stroke[i], stroke[i + 1], after, t));
        sheet.line(last, here, half_width(along), half_width(along + 1.f / pieces));
        along += 1.f / pieces;
        last = here;
      }
    }
  }

  const float ink = random.uniform(.8f, 1.f);
  const float edge = random.uniform(.6f, 1.1f);
  const float noise = style.noise * random.uniform();
  for (std::size_t i = 0; i < image.size(); ++i) {
    const float cover = std::clamp(.5f - sheet.distance(i) / (2 * edge), 0.f, 1.f);
    // The sum of a random word's four bytes is close to normal, with deviation 147.8.
    const std::uint32_t word = random();
    const auto sum =
        static_cast<int>((word & 255) + (word >> 8 & 255) + (word >> 16 & 255) + (word >> 24)) -
        510;
    const float grain = noise * static_cast<float>(sum) / 147.8f;
    image[i] = std::clamp(ink * cover + grain, 0.f, 1.f);
  }
}

}  // namespace cella::data
