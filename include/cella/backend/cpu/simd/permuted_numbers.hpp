// Random permutations: what `permuted` gives for each number, many at a time.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cella/backend/cpu/simd/random_numbers.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cella/graph/random.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cella::cpu {

/// Units of work: stretches of the numbers.
inline constexpr std::int64_t permuted_unit = 8192;
constexpr int permuted_units(std::int64_t count) {
  return int((count + permuted_unit - 1) / permuted_unit);
}

/// y[i] = permuted(i, count, key), for the units' part of `count` numbers, to the bit.
inline void permuted_numbers(work_range units, std::int64_t count, std::uint64_t key,
                             std::int64_t* y);

namespace detail {

/// The network of `permuted`, a number in each lane. Counts have 31 bits, so that rows, columns and
/// words of Philox are the lower halves of lanes.
struct permuting_lanes {
  std::uint64_t half, mask, rows;

  explicit permuting_lanes(std::uint64_t count)
      : half((std::uint64_t(std::bit_width(count)) + 1) / 2),
        mask((std::uint64_t{1} << half) - 1),
        rows((count + mask) >> half) {}

  /// The first word of the block with this counter, in seven rounds.
  [[gnu::always_inline]] static word_lanes word(word_lanes counter, std::uint64_t high,
                                                std::uint64_t key) {
    philox_lanes block(0);
    block.w0 = counter;
    block.w1 = word_lanes{};
    block.w2 = word_lanes{} + high;
    std::uint32_t k0 = std::uint32_t(key), k1 = std::uint32_t(key >> 32);
    for (int round = 0; round < 7; ++round) {
      block.round(k0, k1);
      k0 += 0x9e3779b9u;
      k1 += 0xbb67ae85u;
    }
    return block.w0;
  }
  /// One walk through the network, whose end may be a surplus place.
  [[gnu::always_inline]] word_lanes walk(word_lanes x, std::uint64_t key) const {
    word_lanes column = x & mask, row = x >> half;
    for (std::uint64_t round = 0; round < 8; round += 2) {
      column = (column + word(row, round, key)) & mask;
      row += multiply_words(word(column, round + 1, key), rows) >> 32;
      row -= (word_lanes)(row >= rows + word_lanes{}) & rows;
    }
    return row << half | column;
  }
};

}  // namespace detail

inline void permuted_numbers(work_range units, std::int64_t count, std::uint64_t key,
                             std::int64_t* y) {
  const std::int64_t end = std::min(count, units.last * permuted_unit);
  constexpr std::int64_t few = 64;  // up to here `permuted` shuffles
  if (count <= few) {
    std::array<std::int64_t, std::size_t(few)> order{};
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = std::int64_t(i);
    generator random(key);
    shuffle(span(order).first(std::size_t(count)), random);
    std::copy_n(order.begin(), end, y);
    return;
  }
  constexpr std::int64_t each = lanes<double>, together = 4;
  const detail::permuting_lanes network{std::uint64_t(count)};
  for (std::int64_t i = units.first * permuted_unit; i < end; i += together * each) {
    // Side by side, for a round waits for its multiplications.
    detail::word_lanes x[together];
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < together; ++k)
      x[k] = network.walk(detail::lane_numbers + std::uint64_t(i + k * each), key);
    std::int64_t numbers[together * each];
    std::memcpy(numbers, x, sizeof numbers);
    const std::int64_t n = std::min(together * each, end - i);
    // What ended on a surplus place goes on from there.
    for (std::int64_t k = 0; k < n; ++k)
      y[i + k] = numbers[k] < count ? numbers[k] : permuted(numbers[k], count, key);
  }
}

}  // namespace cella::cpu
