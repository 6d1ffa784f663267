// Many numbers of a stream at once: the same ones that `generator` and `uniform` give one after the
// other, normal ones to 4 units in the last place of a double.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/trigonometry.hpp>
#include <cella/backend/work_range.hpp>
#include <cella/graph/random.hpp>
#include <cstdint>
#include <cstring>
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

// ---- single precision, a vector at any place of the stream

/// The stream of uniform<float>(key, index) in the form that vectors are made from: what the rounds
/// of Philox add to the words.
struct random_stream {
  std::array<std::uint64_t, 20> added{};

  random_stream() = default;
  constexpr explicit random_stream(std::uint64_t key) {
    std::uint32_t k0 = std::uint32_t(key), k1 = std::uint32_t(key >> 32);
    for (std::size_t round = 0; round < 10; ++round, k0 += 0x9e3779b9u, k1 += 0xbb67ae85u) {
      added[2 * round] = k0;
      added[2 * round + 1] = k1;
    }
  }
  constexpr std::uint64_t key() const { return added[1] << 32 | added[0]; }
};

namespace detail {

#if defined(__SSE2__)
template <class T, int Lanes>
struct register_of {
  typedef T type __attribute__((vector_size(sizeof(T) * Lanes)));
};
/// The words of `Blocks` blocks from `first` on, in order. Half the width of the machine's vectors:
/// neighbouring calls overlap, and no lane makes numbers that nobody asked for.
template <int Blocks>
[[gnu::always_inline]] inline auto words_of_blocks(const random_stream& s, std::uint64_t first) {
  using words = typename register_of<std::uint64_t, Blocks>::type;
  using halves = typename register_of<std::uint32_t, 4 * Blocks>::type;
  const auto multiply = [](words a, std::uint64_t b) {
    // Of each lane the lower word counts: the upper ones may hold anything.
    const words factor = b + words{};
#if defined(__AVX2__)
    if constexpr (Blocks == 4) return (words)_mm256_mul_epu32((__m256i)a, (__m256i)factor);
#endif
    if constexpr (Blocks == 2) return (words)_mm_mul_epu32((__m128i)a, (__m128i)factor);
  };
  words counter;
  for (int i = 0; i < Blocks; ++i) counter[i] = first + std::uint64_t(i);
  words w0 = counter, w1 = counter >> 32, w2{}, w3{};
#pragma GCC unroll 10
  for (std::size_t round = 0; round < 10; ++round) {
    const words a = multiply(w0, 0xd2511f53u), b = multiply(w2, 0xcd9e8d57u);
    w0 = (b >> 32) ^ w1 ^ s.added[2 * round];
    w1 = b;
    w2 = (a >> 32) ^ w3 ^ s.added[2 * round + 1];
    w3 = a;
  }
  constexpr std::uint64_t low = 0xffffffffu;
  const words even = (w0 & low) | w1 << 32, odd = (w2 & low) | w3 << 32;
  if constexpr (Blocks == 4)
    return (halves)__builtin_shufflevector(even, odd, 0, 4, 1, 5, 2, 6, 3, 7);
  else
    return (halves)__builtin_shufflevector(even, odd, 0, 2, 1, 3);
}
#endif

/// Numbers `first` ... of the stream; `first` is a multiple of 4.
template <class T>
[[gnu::always_inline]] inline vec<T> uniform_from_block(const random_stream& s,
                                                        std::int64_t first) {
  constexpr int L = lanes<T>;
  alignas(vec<T>) T numbers[L];
#if defined(__SSE2__)
  if constexpr (L / 4 == 4 || L / 4 == 2) {
    using whole = typename register_of<std::int32_t, L>::type;
    using real = typename register_of<T, L>::type;
    const auto words = words_of_blocks<L / 4>(s, std::uint64_t(first) / 4);
    const real y = __builtin_convertvector((whole)(words >> 8), real) * T(0x1p-24);
    std::memcpy(numbers, &y, sizeof y);
    return load(numbers);
  }
#endif
  for (int i = 0; i < L; ++i)
    numbers[i] = T(uniform<float>(s.key(), std::uint64_t(first) + std::uint64_t(i)));
  return load(numbers);
}

}  // namespace detail

/// Numbers `first` ... of the stream, as T: a vector of them.
template <class T>
[[gnu::noinline]] vec<T> uniform_vector(const random_stream& s, std::int64_t first) {
  constexpr int L = lanes<T>;
  const std::int64_t inside = first % 4;
  if (inside == 0) [[likely]]
    return detail::uniform_from_block<T>(s, first);
  alignas(vec<T>) T numbers[(L + 7) / 4 * 4 + L];
  for (int i = 0; i < L + 4; i += std::max(L, 4)) {
    if constexpr (L >= 4) store(numbers + i, detail::uniform_from_block<T>(s, first - inside + i));
  }
  if constexpr (L < 4) {
    for (int i = 0; i < L; ++i)
      numbers[inside + i] = T(uniform<float>(s.key(), std::uint64_t(first) + std::uint64_t(i)));
  }
  return load_unaligned(numbers + inside);
}

/// y[i] = number i of the stream, for the units' part of `count` numbers.
inline constexpr std::int64_t uniform_unit = 4096;
constexpr int uniform_units(std::int64_t count) {
  return int((count + uniform_unit - 1) / uniform_unit);
}
template <class T>
[[gnu::noinline]] void uniform_numbers(work_range units, const random_stream& s, std::int64_t count,
                                       T* y) {
  constexpr int L = lanes<T>;
  const std::int64_t end = std::min(count, units.last * uniform_unit);
  for (std::int64_t i = units.first * uniform_unit; i < end; i += L) {
    const vec<T> v = uniform_vector<T>(s, i);
    if (i + L <= end)
      store_unaligned(y + i, v);
    else
      store_first(y + i, int(end - i), v);
  }
}

}  // namespace cella::cpu
