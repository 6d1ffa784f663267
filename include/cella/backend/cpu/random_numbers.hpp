// Many numbers of a stream at once: the same ones that `generator` gives one after the other,
// normal ones to 4 units in the last place of a double.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/trigonometry.hpp>
#include <cella/graph/random.hpp>
#include <cstdint>
#include <numbers>
#include <span>

namespace cella::cpu {

namespace detail {

/// Words of 32 bits, one in each lane of 64.
using random_words = xsimd::batch<std::uint64_t>;
/// Vectors that are computed side by side: a round waits for its multiplications.
inline constexpr int random_vectors = 4;

/// The whole products of words.
[[gnu::always_inline]] inline random_words multiply_words(random_words a, random_words b) {
#if defined(__AVX512F__)
  return _mm512_mul_epu32(a, b);
#elif defined(__AVX2__)
  return _mm256_mul_epu32(a, b);
#elif defined(__SSE2__)
  return _mm_mul_epu32(a, b);
#else
  return a * b;
#endif
}

/// A block of Philox in each lane.
struct random_blocks {
  random_words word[4][random_vectors];
};
/// Blocks `first` and following of stream 0 of `key`.
[[gnu::noinline]] inline random_blocks philox_blocks(std::uint64_t key, std::uint32_t first) {
  const random_words low(std::uint64_t{0xffffffffu});
  std::uint32_t k0 = std::uint32_t(key), k1 = std::uint32_t(key >> 32);
  random_blocks r;
  alignas(64) std::uint64_t counters[lanes<double>];
  for (int v = 0; v < random_vectors; ++v) {
    for (std::uint64_t& c : counters) c = first++;
    r.word[0][v] = random_words::load_aligned(counters);
    r.word[1][v] = r.word[2][v] = r.word[3][v] = random_words(std::uint64_t{0});
  }
  for (int round = 0; round < 10; ++round) {
    for (int v = 0; v < random_vectors; ++v) {
      const random_words a = multiply_words(r.word[0][v], random_words(std::uint64_t{0xd2511f53u}));
      const random_words b = multiply_words(r.word[2][v], random_words(std::uint64_t{0xcd9e8d57u}));
      r.word[0][v] = (b >> 32) ^ r.word[1][v] ^ random_words(std::uint64_t{k0});
      r.word[1][v] = b & low;
      r.word[2][v] = (a >> 32) ^ r.word[3][v] ^ random_words(std::uint64_t{k1});
      r.word[3][v] = a & low;
    }
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  return r;
}

/// [0, 1) of the leading 53 bits of two words: what generator::uniform<double>() makes of them.
[[gnu::always_inline]] inline vec<double> unit_interval(random_words high, random_words low) {
  // A whole number below 2^52 in the significand of 2^52.
  const auto whole = [](random_words w) {
    constexpr std::uint64_t exponent = 0x4330000000000000u;
    return xsimd::bitwise_cast<vec<double>>(w | random_words(exponent)) - vec<double>(0x1p52);
  };
  return whole(high) * vec<double>(0x1p-32) + whole(low >> 11) * vec<double>(0x1p-53);
}

/// Blocks that are computed at a time.
inline constexpr int random_chunk = random_vectors * lanes<double>;

/// The two uniform numbers of each block from `first` on.
[[gnu::noinline]] inline void uniform_pairs(std::uint64_t key, std::uint32_t first, double* even,
                                            double* odd) {
  const random_blocks b = philox_blocks(key, first);
  for (int v = 0; v < random_vectors; ++v) {
    store(even + v * lanes<double>, unit_interval(b.word[0][v], b.word[1][v]));
    store(odd + v * lanes<double>, unit_interval(b.word[2][v], b.word[3][v]));
  }
}

/// A normal number of each block from `first` on: the first of its pair (Box and Muller, 1958).
[[gnu::noinline]] inline void normal_numbers(std::uint64_t key, std::uint32_t first, double* out) {
  const random_blocks b = philox_blocks(key, first);
  for (int v = 0; v < random_vectors; ++v) {
    const vec<double> rest = vec<double>(1.0) - unit_interval(b.word[0][v], b.word[1][v]);
    const vec<double> angle =
        vec<double>(2 * std::numbers::pi) * unit_interval(b.word[2][v], b.word[3][v]);
    const vec<double> radius = xsimd::sqrt(vec<double>(-2.0) * logarithm(rest));
    store(out + v * lanes<double>, radius * cosine(angle));
  }
}

}  // namespace detail

/// The first n numbers that generator(key).uniform<double>() gives, a chunk at a time:
/// f(index of the first, span of numbers).
template <class F>
void for_uniform(std::uint64_t key, std::int64_t n, F f) {
  constexpr int chunk = 2 * detail::random_chunk;  // a block makes two
  for (std::int64_t first = 0; first < n; first += chunk) {
    alignas(64) double even[detail::random_chunk], odd[detail::random_chunk];
    detail::uniform_pairs(key, std::uint32_t(first / 2), even, odd);
    double numbers[chunk];
    for (int i = 0; i < chunk; ++i) numbers[i] = i % 2 ? odd[i / 2] : even[i / 2];
    f(first,
      std::span<const double>(numbers, std::size_t(std::min<std::int64_t>(chunk, n - first))));
  }
}

/// The same for generator(key).normal<double>().
template <class F>
void for_normal(std::uint64_t key, std::int64_t n, F f) {
  constexpr int chunk = detail::random_chunk;
  for (std::int64_t first = 0; first < n; first += chunk) {
    alignas(64) double numbers[chunk];
    detail::normal_numbers(key, std::uint32_t(first), numbers);
    f(first,
      std::span<const double>(numbers, std::size_t(std::min<std::int64_t>(chunk, n - first))));
  }
}

}  // namespace cella::cpu
