#include <doctest/doctest.h>

#include <cella/graph/dtype.hpp>
#include <cella/graph/random.hpp>
#include <cmath>
#include <limits>
#include <type_traits>

using namespace cella;

namespace {

/// The value of a binary16 by its definition: (-1)^s 2^(e-15) 1.f, subnormal below.
double half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const double magnitude = exponent == 31
                               ? (fraction ? std::nan("") : std::numeric_limits<double>::infinity())
                           : exponent ? std::ldexp(1024 + fraction, exponent - 25)
                                      : std::ldexp(fraction, -24);
  return bits & 0x8000 ? -magnitude : magnitude;
}

/// The nearest half to a finite value, ties to the even pattern, found by bisection over all halves
/// of that sign.
std::uint16_t nearest_half(double value) {
  const double v = std::abs(value);
  std::uint16_t low = 0;
  std::uint16_t high = 0x7c00;  // infinity counts as 2^16 when distances are compared
  auto at = [](std::uint16_t b) { return b == 0x7c00 ? 65536.0 : half_value(b); };
  if (v >= 65536) return std::uint16_t(std::signbit(value) ? 0xfc00 : 0x7c00);
  while (high - low > 1) {
    const auto middle = std::uint16_t((low + high) / 2);
    (at(middle) <= v ? low : high) = middle;
  }
  const double below = v - at(low);
  const double above = at(high) - v;
  const bool up = above < below || (above == below && (high & 1) == 0);
  return std::uint16_t((up ? high : low) | (std::signbit(value) ? 0x8000 : 0));
}

/// The nearest bfloat16 by arithmetic on the two neighbours.
std::uint16_t nearest_bfloat(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto low = std::uint16_t(bits >> 16);
  const auto high = std::uint16_t(low + 1);
  auto at = [](std::uint16_t b) { return double(std::bit_cast<float>(std::uint32_t(b) << 16)); };
  const double upper = (high & 0x7fff) == 0x7f80 ? std::copysign(0x1p128, double(value)) : at(high);
  const double below = std::abs(double(value) - at(low));
  const double above = std::abs(upper - double(value));
  return above < below || (above == below && (high & 1) == 0) ? high : low;
}

static_assert(float(float16(1.0f)) == 1.0f && float16(1.0f).bits == 0x3c00);
static_assert(float16(65504.0f).bits == 0x7bff && float16(65520.0f).bits == 0x7c00);
static_assert(float16(-0.0f).bits == 0x8000);
static_assert(float16(0x1p-24f).bits == 1 && float16(0x1p-25f).bits == 0);
static_assert(bfloat16(1.0f).bits == 0x3f80 && float(bfloat16(-2.0f)) == -2.0f);
static_assert(name(dtype::bf16) == "bf16" && name(dtype::boolean) == "bool");
static_assert(size_of(dtype::f64) == 8 && size_of(dtype::boolean) == 1 &&
              size_of(dtype::tuple) == 0);
static_assert(is_floating(dtype::bf16) && !is_floating(dtype::i8) && !is_floating(dtype::record));
static_assert(is_differentiable(dtype::record) && !is_differentiable(dtype::i64));

}  // namespace

TEST_CASE("every half converts to the value of its definition and back to itself") {
  int wrong = 0;
  for (int i = 0; i < 65536; ++i) {
    const auto bits = std::uint16_t(i);
    float16 h;
    h.bits = bits;
    const float f = h;
    const double expected = half_value(bits);
    if (expected != expected) {
      wrong += f == f || float(float16(f)) == float(float16(f));
    } else {
      wrong += double(f) != expected || std::signbit(f) != std::signbit(expected);
      wrong += float16(f).bits != bits;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("a float converts to the nearest half") {
  generator random(1);
  int wrong = 0;
  for (int i = 0; i < 200000; ++i) {
    const auto f = std::bit_cast<float>(random());
    if (!std::isfinite(f)) continue;
    wrong += float16(f).bits != nearest_half(f);
  }
  // Most floats lie outside a half's range: the same with exponents -26 to 16.
  for (int i = 0; i < 200000; ++i) {
    const float f =
        std::ldexp(float(random.below(1u << 24)) - float(1 << 23), int(random.below(43)) - 49);
    wrong += float16(f).bits != nearest_half(f);
  }
  CHECK(wrong == 0);
}

TEST_CASE("a tie between two halves goes to the even one, and its neighbours to the nearer") {
  int wrong = 0;
  for (int i = 0; i < 0x7c00; ++i) {
    const double middle =
        (half_value(std::uint16_t(i)) + (i == 0x7bff ? 65536 : half_value(std::uint16_t(i + 1)))) /
        2;
    const auto f = float(middle);
    REQUIRE(double(f) == middle);
    const int even = i & 1 ? i + 1 : i;
    wrong += float16(f).bits != even;
    wrong += float16(-f).bits != (even | 0x8000);
    wrong += float16(std::nextafter(f, 0.0f)).bits != i;
    wrong += float16(std::nextafter(f, 1e6f)).bits != i + 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("every bfloat16 round-trips, and a float goes to the nearest, ties to even") {
  int wrong = 0;
  for (int i = 0; i < 65536; ++i) {
    bfloat16 b;
    b.bits = std::uint16_t(i);
    const float f = b;
    if (f != f)
      wrong += float(bfloat16(f)) == float(bfloat16(f));
    else
      wrong += bfloat16(f).bits != i;
    // The tie above it.
    const auto tie = std::bit_cast<float>(std::uint32_t(i) << 16 | 0x8000u);
    if (std::isfinite(tie)) wrong += bfloat16(tie).bits != (i & 1 ? i + 1 : i);
  }
  generator random(2);
  for (int i = 0; i < 200000; ++i) {
    const auto f = std::bit_cast<float>(random());
    if (std::isfinite(f)) wrong += bfloat16(f).bits != nearest_bfloat(f);
  }
  CHECK(wrong == 0);
}

TEST_CASE("element types and their dtypes map to each other") {
  for (dtype t : {dtype::f32, dtype::f64, dtype::f16, dtype::bf16, dtype::i8, dtype::u8, dtype::i32,
                  dtype::i64, dtype::boolean, dtype::i16, dtype::u16, dtype::u32, dtype::u64,
                  dtype::c64, dtype::c128}) {
    with_element(t, [&]<class T>() {
      CHECK(dtype_of<T> == t);
      CHECK(sizeof(T) == size_of(t));
      CHECK(is_floating(t) == (std::is_floating_point_v<T> || std::is_same_v<T, float16> ||
                               std::is_same_v<T, bfloat16>));
    });
  }
}
