// Counter-based random numbers: a value is a pure function of a key and a counter, so that results
// depend neither on the order of evaluation nor on the number of threads.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cella/graph/list.hpp>
#include <cella/graph/span.hpp>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <utility>

namespace cella {

using random_block = std::array<std::uint32_t, 4>;

/// Philox4x32: encrypts a counter of four words (lowest first) with a key of two.
/// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
/// Ten rounds are the paper's choice; seven are the fewest that pass its tests.
template <int Rounds = 10>
constexpr random_block philox4x32(random_block counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < Rounds; ++round) {
    const std::uint64_t a = std::uint64_t{0xd2511f53u} * counter[0];
    const std::uint64_t b = std::uint64_t{0xcd9e8d57u} * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9e3779b9u;
    key[1] += 0xbb67ae85u;
  }
  return counter;
}

/// The same with 64-bit words: `low` and `high` are the halves of the counter.
template <int Rounds = 10>
constexpr random_block philox4x32(std::uint64_t low, std::uint64_t high, std::uint64_t key) {
  return philox4x32<Rounds>(
      {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32),
       static_cast<std::uint32_t>(high), static_cast<std::uint32_t>(high >> 32)},
      {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)});
}

/// A new key, independent of `key` and of those for other values.
constexpr std::uint64_t fold_in(std::uint64_t key, std::uint64_t value) {
  // No stream of numbers has this upper half, so keys and numbers never coincide.
  const auto b = philox4x32(value, ~std::uint64_t{0}, key);
  return std::uint64_t{b[1]} << 32 | b[0];
}

namespace detail {
/// [0, 1) from as many leading bits as the significand holds.
template <std::floating_point T>
constexpr T unit_interval(std::uint32_t high, std::uint32_t low) {
  if constexpr (std::numeric_limits<T>::digits <= 32) {
    constexpr int digits = std::numeric_limits<T>::digits;
    return static_cast<T>(high >> (32 - digits)) * (T{1} / static_cast<T>(1ull << digits));
  } else {
    return static_cast<T>((std::uint64_t{high} << 32 | low) >> 11) * static_cast<T>(0x1p-53);
  }
}

/// Two independent standard normal numbers from two numbers in [0, 1) (Box and Muller, 1958).
template <std::floating_point T>
std::array<T, 2> box_muller(T first, T second) {
  // 1 - first lies in (0, 1], which keeps the logarithm finite.
  const T radius = std::sqrt(T{-2} * std::log(T{1} - first));
  const T angle = T{2} * std::numbers::pi_v<T> * second;
  return {radius * std::cos(angle), radius * std::sin(angle)};
}
}  // namespace detail

/// Number `index` of the uniform stream of `key`, in [0, 1): multiples of 2^-24 or 2^-53.
/// A block of Philox serves four floats or two doubles: element i of a float stream is word i % 4
/// of block i / 4, of a double stream words 2(i % 2) and 2(i % 2) + 1 of block i / 2.
template <std::floating_point T>
constexpr T uniform(std::uint64_t key, std::uint64_t index) {
  if constexpr (std::numeric_limits<T>::digits <= 32) {
    return detail::unit_interval<T>(philox4x32(index / 4, 0, key)[index % 4], 0);
  } else {
    const auto b = philox4x32(index / 2, 0, key);
    return detail::unit_interval<T>(b[index % 2 * 2], b[index % 2 * 2 + 1]);
  }
}

/// Number `index` of the standard normal stream of `key`; numbers 2i and 2i + 1 are the pair that
/// comes from uniform numbers 2i and 2i + 1.
template <std::floating_point T>
T normal(std::uint64_t key, std::uint64_t index) {
  const std::uint64_t pair = index / 2 * 2;
  return detail::box_muller(uniform<T>(key, pair), uniform<T>(key, pair + 1))[index % 2];
}

/// A stream of random numbers: a `std::uniform_random_bit_generator` without state worth the name.
/// Generators that differ in key, stream or substream are independent. A stream has 2^34 words.
class generator {
 public:
  using result_type = std::uint32_t;

  constexpr explicit generator(std::uint64_t key, std::uint64_t stream = 0,
                               std::uint32_t substream = 0)
      : key_(key), stream_(stream), substream_(substream) {}

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return 0xffffffffu; }

  constexpr result_type operator()() {
    if (used_ == 4) {
      block_ =
          philox4x32({count_++, static_cast<std::uint32_t>(stream_),
                      static_cast<std::uint32_t>(stream_ >> 32), substream_},
                     {static_cast<std::uint32_t>(key_), static_cast<std::uint32_t>(key_ >> 32)});
      used_ = 0;
    }
    return block_[used_++];
  }

  /// Uniform in [0, 1).
  template <std::floating_point T = float>
  constexpr T uniform() {
    const auto high = (*this)();
    if constexpr (std::numeric_limits<T>::digits <= 32) {
      return detail::unit_interval<T>(high, 0);
    } else {
      return detail::unit_interval<T>(high, (*this)());
    }
  }
  /// Uniform in [low, high), up to rounding.
  template <std::floating_point T>
  constexpr T uniform(T low, T high) {
    return low + (high - low) * uniform<T>();
  }

  /// Two independent standard normal numbers.
  template <std::floating_point T = float>
  std::array<T, 2> normal_pair() {
    const T first = uniform<T>();
    return detail::box_muller(first, uniform<T>());
  }
  /// Standard normal: the first of a pair, so that nothing hidden is kept between calls.
  template <std::floating_point T = float>
  T normal() {
    return normal_pair<T>()[0];
  }

  /// Uniform in [0, bound), without bias. Precondition: bound > 0.
  /// Source: Lemire, "Fast random integer generation in an interval", TOMACS 2019.
  constexpr std::uint32_t below(std::uint32_t bound) {
    std::uint64_t product = std::uint64_t{(*this)()} * bound;
    if (static_cast<std::uint32_t>(product) < bound) {
      const std::uint32_t threshold = (0u - bound) % bound;
      while (static_cast<std::uint32_t>(product) < threshold) {
        product = std::uint64_t{(*this)()} * bound;
      }
    }
    return static_cast<std::uint32_t>(product >> 32);
  }

 private:
  std::uint64_t key_;
  std::uint64_t stream_;
  std::uint32_t substream_;
  std::uint32_t count_{};
  random_block block_{};
  std::size_t used_{4};
};

/// Shuffles in place (Fisher and Yates; Durstenfeld, 1964): every order is equally likely.
/// Precondition: fewer than 2^32 elements.
template <class T>
constexpr void shuffle(span<T> values, generator& random) {
  for (std::size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[random.below(static_cast<std::uint32_t>(i))]);
  }
}

/// The numbers 0 to count - 1 in a random order that depends on the arguments only.
constexpr list<std::int32_t> permutation(std::int32_t count, std::uint64_t key,
                                         std::uint64_t stream = 0) {
  list<std::int32_t> order(static_cast<std::size_t>(count), 0);
  for (std::int32_t i = 0; i < count; ++i) order[static_cast<std::size_t>(i)] = i;
  generator random(key, stream);
  shuffle(span(order), random);
  return order;
}

/// Element `index` of a random permutation of 0 to count - 1, without storing the permutation.
/// Up to 64 elements: Fisher-Yates, every order is equally likely. Above: a generalized Feistel
/// network of eight Philox rounds with cycle walking (Black and Rogaway, "Ciphers with arbitrary
/// finite domains", CT-RSA 2002). Preconditions: 0 <= index < count <= 2^62.
constexpr std::int64_t permuted(std::int64_t index, std::int64_t count, std::uint64_t key) {
  if (count <= 64) {
    std::array<std::uint8_t, 64> order{};
    for (std::size_t i = 0; i < 64; ++i) order[i] = static_cast<std::uint8_t>(i);
    generator random(key);
    shuffle(span(order).first(static_cast<std::size_t>(count)), random);
    return order[static_cast<std::size_t>(index)];
  }
  // The domain is a grid of 2^half columns and just enough rows to hold all elements; what falls
  // on the less than 2^half surplus places is permuted again.
  const auto n = static_cast<std::uint64_t>(count);
  const auto half = static_cast<int>((std::bit_width(n) + 1) / 2);
  const std::uint64_t rows = (n + (std::uint64_t{1} << half) - 1) >> half;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  auto x = static_cast<std::uint64_t>(index);
  do {
    std::uint64_t column = x & mask;
    std::uint64_t row = x >> half;
    for (std::uint32_t round = 0; round < 8; round += 2) {
      column = (column + philox4x32<7>(row, round, key)[0]) & mask;
      row += philox4x32<7>(column, round + 1, key)[0] * rows >> 32;
      if (row >= rows) row -= rows;
    }
    x = row << half | column;
  } while (x >= n);
  return static_cast<std::int64_t>(x);
}

}  // namespace cella
