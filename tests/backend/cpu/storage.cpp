// Vectors of numbers that memory holds in 16 bits, against the scalar conversions of
// graph/dtype.hpp.
#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cella/backend/cpu/simd/storage.hpp>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

using namespace cella;
using namespace cella::cpu;

namespace {

constexpr int L = lanes<float>;

template <class S>
S from_bits(std::uint32_t bits) {
  S s;
  s.bits = static_cast<std::uint16_t>(bits);
  return s;
}
std::array<float, L> values(vec<float> a) {
  std::array<float, L> row{};
  store_unaligned(row.data(), a);
  return row;
}
bool same(float a, float b) {
  return std::isnan(a) ? std::isnan(b) : std::bit_cast<int>(a) == std::bit_cast<int>(b);
}

}  // namespace

TEST_CASE_TEMPLATE("every number of 16 bits is loaded as what it is", S, float16, bfloat16) {
  int wrong = 0;
  for (std::uint32_t first = 0; first < 65536; first += L) {
    std::array<S, L> stored;
    for (std::uint32_t i = 0; i < L; ++i) stored[i] = from_bits<S>(first + i);
    const auto found = values(load_stored<float>(stored.data()));
    for (std::uint32_t i = 0; i < L; ++i) wrong += !same(found[i], static_cast<float>(stored[i]));
  }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("numbers are rounded to nearest, ties to even, as by the scalar conversion", S,
                   float16, bfloat16) {
  std::mt19937 random(1);
  int wrong = 0;
  auto check = [&](const std::array<float, L>& row) {
    std::array<S, L> stored;
    store_stored(stored.data(), load_unaligned(row.data()));
    const auto rounded = values(rounded_to<S>(load_unaligned(row.data())));
    for (std::size_t i = 0; i < L; ++i) {
      const S expected(row[i]);
      if (std::isnan(row[i])) {
        wrong += !std::isnan(static_cast<float>(stored[i]));
      } else {
        wrong += stored[i].bits != expected.bits;
      }
      wrong += !same(rounded[i], static_cast<float>(stored[i]));
    }
  };
  // Between each number and the next: the tie, and its neighbours on either side.
  std::vector<float> all{0.0f, -0.0f, INFINITY, -INFINITY, NAN, 3e38f, 65519.0f, 65520.0f, 1e-8f};
  for (std::uint32_t bits = 0; bits < 65535; ++bits) {
    const auto low = static_cast<float>(from_bits<S>(bits));
    const auto high = static_cast<float>(from_bits<S>(bits + 1));
    const float tie = low + (high - low) / 2;
    for (float v : {std::nextafter(tie, low), tie, std::nextafter(tie, high)}) all.push_back(v);
  }
  for (int i = 0; i < 100000; ++i) all.push_back(std::bit_cast<float>(std::uint32_t(random())));
  while (all.size() % L) all.push_back(0);
  std::array<float, L> row{};
  for (std::size_t first = 0; first < all.size(); first += L) {
    for (std::size_t i = 0; i < L; ++i) row[i] = all[first + i];
    check(row);
  }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("a part of a vector touches nothing behind it", S, float16, bfloat16) {
  for (int n = 0; n <= L; ++n) {
    std::vector<S> few(std::size_t(n), S(1.5f));  // the sanitizer watches its end
    const auto found = values(load_stored<float>(few.data(), n));
    for (int i = 0; i < L; ++i) CHECK(found[std::size_t(i)] == (i < n ? 1.5f : 0.0f));
    std::array<S, L + 1> all;
    all.fill(S(7.0f));
    store_stored(all.data(), vec<float>(2.5f), n);
    for (int i = 0; i <= L; ++i)
      CHECK(static_cast<float>(all[std::size_t(i)]) == (i < n ? 2.5f : 7.0f));
  }
}
