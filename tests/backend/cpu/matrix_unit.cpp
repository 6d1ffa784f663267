// The matrix unit of this machine, if it has one, beside the one that is emulated: bit by bit, for
// numbers of all sizes; and the emulated one beside sums in double precision.
#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cella/backend/cpu/simd/matrix_unit.hpp>
#include <cmath>
#include <cstdint>
#include <random>
#include <type_traits>

using namespace cella;
using namespace cella::cpu;

namespace {

using tile = std::array<std::uint32_t, unit_rows * unit_words>;

template <class Unit, bool Bytes>
tile sum_of(const tile& a, const tile& b, tile sum) {
  constexpr std::int64_t row = unit_words * 4;
  Unit unit;
  unit.template load<0>(sum.data(), row);
  unit.template load<6>(a.data(), row);
  unit.template load<7>(b.data(), row);
  if constexpr (Bytes)
    unit.template add_bytes<0, 6, 7>();
  else
    unit.template add_pairs<0, 6, 7>();
  unit.template store<0>(sum.data(), row);
  return sum;
}

/// A number of bf16 whose exponent lies in [least, most].
std::uint32_t some_bf16(std::mt19937& random, unsigned least, unsigned most) {
  return std::uint32_t((random() & 0x807fu) | (least + random() % (most - least + 1)) << 7);
}
tile some_pairs(std::mt19937& random, unsigned least, unsigned most) {
  tile t;
  for (auto& word : t) word = some_bf16(random, least, most) | some_bf16(random, least, most) << 16;
  return t;
}
tile some_bits(std::mt19937& random) {
  tile t;
  for (auto& word : t) word = std::uint32_t(random());
  return t;
}
double number(std::uint32_t word) { return double{std::bit_cast<float>(word)}; }

}  // namespace

TEST_CASE("the matrix unit and the emulated one yield the same bits") {
  if constexpr (std::is_void_v<matrix_unit>) {
    MESSAGE("this build has no matrix unit");
  } else {
    std::mt19937 random(3);
    // Near one, denormal numbers among others, and products that are too small for single
    // precision.
    constexpr std::array<std::array<unsigned, 2>, 3> exponents{{{119, 134}, {0, 3}, {20, 110}}};
    for (int n = 0; n < 300; ++n) {
      const auto [least, most] = exponents[std::size_t(n) % exponents.size()];
      const tile a = some_pairs(random, least, most), b = some_pairs(random, 20, 134);
      tile c = some_pairs(random, least, most);
      if (sum_of<matrix_unit, false>(a, b, c) != sum_of<emulated_unit, false>(a, b, c))
        FAIL("pairs of bf16, of exponents from ", least, " to ", most);
      c = some_bits(random);
      if (sum_of<matrix_unit, true>(a, b, c) != sum_of<emulated_unit, true>(a, b, c)) FAIL("bytes");
    }
    CHECK(sum_of<matrix_unit, true>({}, {}, {}) == tile{});
  }
}

TEST_CASE("the emulated matrix unit adds the products of pairs") {
  std::mt19937 random(5);
  const tile a = some_pairs(random, 120, 130), b = some_pairs(random, 120, 130);
  const tile sum = sum_of<emulated_unit, false>(a, b, {});
  for (std::size_t i = 0; i < unit_rows; ++i) {
    for (std::size_t j = 0; j < unit_words; ++j) {
      double exact = 0, size = 0;
      for (std::size_t k = 0; k < unit_words; ++k) {
        const std::uint32_t x = a[i * unit_words + k], y = b[k * unit_words + j];
        const double first = number(x << 16) * number(y << 16);
        const double second = number(x & 0xffff0000u) * number(y & 0xffff0000u);
        exact += first + second;
        size += std::abs(first) + std::abs(second);
      }
      CHECK(std::abs(number(sum[i * unit_words + j]) - exact) <= 1e-6 * size);
    }
  }
}

TEST_CASE("the emulated matrix unit adds the products of bytes, u8 by s8") {
  std::mt19937 random(6);
  const tile a = some_bits(random), b = some_bits(random), c = some_bits(random);
  const tile sum = sum_of<emulated_unit, true>(a, b, c);
  for (std::size_t i = 0; i < unit_rows; ++i) {
    for (std::size_t j = 0; j < unit_words; ++j) {
      std::int64_t exact = c[i * unit_words + j];
      for (std::size_t k = 0; k < unit_words; ++k) {
        for (unsigned byte = 0; byte < 4; ++byte)
          exact += std::int64_t(a[i * unit_words + k] >> 8 * byte & 0xff) *
                   static_cast<std::int8_t>(b[k * unit_words + j] >> 8 * byte & 0xff);
      }
      CHECK(sum[i * unit_words + j] == static_cast<std::uint32_t>(exact));
    }
  }
}
