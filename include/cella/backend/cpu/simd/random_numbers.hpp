// Many numbers of a stream at once: the same ones that `generator` and `uniform` give one after the
// other, normal ones to 4 units in the last place of a double.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/simd/logarithms.hpp>
#include <cella/backend/cpu/simd/trigonometry.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cella/graph/random.hpp>
#include <cstdint>
#include <cstring>
#include <numbers>
#include <span>
#include <utility>

namespace cella::cpu {

namespace detail {

/// Vectors that are computed side by side: a round waits for its multiplications.
inline constexpr int random_vectors = 4;

using word_lanes = compiler_vector<std::uint64_t, lanes<double>>::type;

/// The products of the lower halves of the lanes.
[[gnu::always_inline]] inline word_lanes multiply_words(word_lanes a, std::uint64_t factor) {
  const word_lanes b = factor + word_lanes{};
#if defined(__AVX512F__)
  return (word_lanes)_mm512_mul_epu32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
  return (word_lanes)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__) && !defined(__AVX__)
  return (word_lanes)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
  return (a & 0xffffffffu) * b;
#endif
}

/// The upper halves of the lanes in the lower ones; what stands in the upper ones counts for
/// nothing. A shuffle leaves the port of the multiplications free, which a shift would share.
[[gnu::always_inline]] inline word_lanes upper_words(word_lanes a) {
#if defined(__AVX512F__)
  return (word_lanes)_mm512_maskz_shuffle_epi32(0xffff, (__m512i)a, _MM_PERM_CDAB);
#elif defined(__AVX2__)
  return (word_lanes)_mm256_shuffle_epi32((__m256i)a, 0xb1);
#else
  return a >> 32;
#endif
}

/// A block of Philox in each lane, its words in the lower halves: what stands in the upper ones
/// counts for nothing.
struct random_blocks {
  word_lanes word[4][random_vectors];
};
/// 0, 1, 2, ...
inline constexpr word_lanes lane_numbers =
    []<std::uint64_t... I>(std::integer_sequence<std::uint64_t, I...>) {
  return word_lanes{I...};
}
(std::make_integer_sequence<std::uint64_t, lanes<double>>{});

/// The blocks of one vector while they are encrypted: multiplications see the lower halves only.
struct philox_lanes {
  word_lanes w0, w1, w2{}, w3{};

  [[gnu::always_inline]] explicit philox_lanes(std::uint64_t first)
      : w0(lane_numbers + first), w1(w0 >> 32) {}
  [[gnu::always_inline]] void round(std::uint64_t k0, std::uint64_t k1) {
    const word_lanes a = multiply_words(w0, 0xd2511f53u), b = multiply_words(w2, 0xcd9e8d57u);
    w0 = upper_words(b) ^ w1 ^ k0;
    w1 = b;
    w2 = upper_words(a) ^ w3 ^ k1;
    w3 = a;
  }
  void put(int vector, random_blocks& to) const {
    std::size_t k = 0;
    for (const word_lanes w : {w0, w1, w2, w3}) to.word[k++][vector] = w;
  }
};

/// Blocks `first` and following of stream 0 of `key`.
[[gnu::noinline]] inline random_blocks philox_blocks(std::uint64_t key, std::uint64_t first) {
  constexpr std::uint64_t n = lanes<double>;
  std::uint32_t k0 = std::uint32_t(key), k1 = std::uint32_t(key >> 32);
  // Not an array, which g++ 12 would keep in memory.
  static_assert(random_vectors == 4);
  philox_lanes a(first), b(first + n), c(first + 2 * n), d(first + 3 * n);
  for (int round = 0; round < 10; ++round) {
    a.round(k0, k1);
    b.round(k0, k1);
    c.round(k0, k1);
    d.round(k0, k1);
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  random_blocks r;
  a.put(0, r);
  b.put(1, r);
  c.put(2, r);
  d.put(3, r);
  return r;
}

/// [0, 1) of the leading 53 bits of two words: what generator::uniform<double>() makes of them.
[[gnu::always_inline]] inline vec<double> unit_interval(word_lanes high, word_lanes low) {
  // A whole number below 2^52 in the significand of 2^52.
  const auto whole = [](word_lanes w, int dropped) {
    constexpr std::uint64_t exponent = 0x4330000000000000u;
    const word_lanes bits = (w & 0xffffffffu) >> dropped | exponent;
    return vec<double>((vec<double>::register_type)bits) - vec<double>(0x1p52);
  };
  return whole(high, 0) * vec<double>(0x1p-32) + whole(low, 11) * vec<double>(0x1p-53);
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

// ---- uniform numbers at any place of a stream

namespace detail {

/// Numbers that are made at a time, from whole blocks: a block has four floats or two doubles.
template <class T>
inline constexpr int drawn_chunk = int(sizeof(random_block) / sizeof(T)) * random_chunk;

/// Lanes `First` and following of both, by turns.
template <int First, class V>
V zip(V even, V odd) {
  constexpr int n = lanes<double>;
  return [&]<int... I>(std::integer_sequence<int, I...>) {
    return __builtin_shufflevector(even, odd, (First + I / 2 + I % 2 * n)...);
  }
  (std::make_integer_sequence<int, n>{});
}
/// The lower halves of both, by turns.
template <class V>
V zip_lower(V even, V odd) {
  constexpr int n = 2 * lanes<double>;
  return [&]<int... I>(std::integer_sequence<int, I...>) {
    return __builtin_shufflevector(even, odd, (I % 2 ? n + I - 1 : I)...);
  }
  (std::make_integer_sequence<int, n>{});
}

/// numbers[i] = uniform<T>(key, first + i); `first` is a multiple of 4.
[[gnu::noinline]] inline void make_uniform(std::uint64_t key, std::uint64_t first, float* numbers) {
  const random_blocks b = philox_blocks(key, first / 4);
  constexpr int n = lanes<double>;
  using words = compiler_vector<std::uint32_t, 2 * n>::type;
  using whole = compiler_vector<std::int32_t, 2 * n>::type;
  using real = compiler_vector<float, 2 * n>::type;
  const auto put = [](word_lanes w, float* to) {
    const real y = __builtin_convertvector((whole)((words)w >> 8), real) * 0x1p-24f;
    std::memcpy(to, &y, sizeof y);
  };
  for (int v = 0; v < random_vectors; ++v, numbers += 4 * n) {
    const auto word = [&](int k) { return (words)b.word[k][v]; };
    const auto even = (word_lanes)zip_lower(word(0), word(1));
    const auto odd = (word_lanes)zip_lower(word(2), word(3));
    put(zip<0>(even, odd), numbers);
    put(zip<n / 2>(even, odd), numbers + 2 * n);
  }
}
[[gnu::noinline]] inline void make_uniform(std::uint64_t key, std::uint64_t first,
                                           double* numbers) {
  const random_blocks b = philox_blocks(key, first / 2);
  constexpr int n = lanes<double>;
  for (int v = 0; v < random_vectors; ++v, numbers += 2 * n) {
    const vec<double>::register_type even = unit_interval(b.word[0][v], b.word[1][v]);
    const vec<double>::register_type odd = unit_interval(b.word[2][v], b.word[3][v]);
    store_unaligned(numbers, vec<double>(zip<0>(even, odd)));
    store_unaligned(numbers + n, vec<double>(zip<n / 2>(even, odd)));
  }
}

/// The numbers that a thread made last.
template <class T>
struct drawn_numbers {
  std::uint64_t key{};
  std::uint64_t first = std::uint64_t{1} << 62;  // no stream is that long
  alignas(64) T numbers[drawn_chunk<T>]{};
};

}  // namespace detail

/// uniform<T>(key, first) and following, as a vector. Who draws from several streams in turn
/// tells them apart by `Stream`: each has a chunk of numbers, made at once because a round waits
/// for its multiplications.
template <class T, int Stream = 0>
[[gnu::always_inline]] inline vec<T> uniform_vector(std::uint64_t key, std::int64_t first) {
  static constinit thread_local detail::drawn_numbers<T> made{};
  const auto begin = static_cast<std::uint64_t>(first);
  if (begin - made.first > std::uint64_t{detail::drawn_chunk<T> - lanes<T>} || made.key != key)
      [[unlikely]] {
    made.key = key;
    made.first = begin / 4 * 4;
    detail::make_uniform(key, made.first, made.numbers);
  }
  return load_unaligned(made.numbers + (begin - made.first));
}

/// y[i] = uniform<T>(key, i), for the units' part of `count` numbers.
inline constexpr std::int64_t uniform_unit = 4096;
constexpr int uniform_units(std::int64_t count) {
  return int((count + uniform_unit - 1) / uniform_unit);
}
template <class T>
[[gnu::noinline]] void uniform_numbers(work_range units, std::uint64_t key, std::int64_t count,
                                       T* y) {
  constexpr int L = lanes<T>;
  const std::int64_t end = std::min(count, units.last * uniform_unit);
  for (std::int64_t i = units.first * uniform_unit; i < end; i += L) {
    const vec<T> v = uniform_vector<T>(key, i);
    if (i + L <= end)
      store_unaligned(y + i, v);
    else
      store_first(y + i, int(end - i), v);
  }
}

}  // namespace cella::cpu
