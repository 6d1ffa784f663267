// Sums of products of bytes, u8 times s8, in 32 bits: a vector of sums, to each of which one
// instruction or two add a group of products. No sum saturates on the way, so that all instruction
// sets yield the same: VNNI adds groups of four in 32 bits; where it lacks, bytes are widened to 16
// bits, whose products are added in pairs. (`maddubs`, which multiplies bytes, would cut sums of
// two products at 32767.)
#pragma once

#include <cella/backend/cpu/simd/vector.hpp>
#include <cstdint>
#include <cstring>

namespace cella::cpu {

#if defined(__AVX512F__) && defined(__AVX512VNNI__)

struct byte_sums {
  using vector = __m512i;
  static constexpr int lanes = 16, group = 4, rows = 14;
  static vector zero() { return _mm512_setzero_si512(); }
  static vector load(const std::uint32_t* p) { return _mm512_loadu_si512(p); }
  static void store(std::int32_t* p, vector a) { _mm512_storeu_si512(p, a); }
  /// sum + the products of the group in `left`, of one row, and those of each column.
  static vector add(vector sum, std::uint32_t left, vector right) {
    return _mm512_dpbusd_epi32(sum, _mm512_set1_epi32(static_cast<int>(left)), right);
  }
};

#elif defined(__AVX512BW__)

struct byte_sums {
  using vector = __m512i;
  static constexpr int lanes = 16, group = 2, rows = 14;
  static vector zero() { return _mm512_setzero_si512(); }
  static vector load(const std::uint32_t* p) { return _mm512_loadu_si512(p); }
  static void store(std::int32_t* p, vector a) { _mm512_storeu_si512(p, a); }
  static vector add(vector sum, std::uint32_t left, vector right) {
    return _mm512_add_epi32(sum,
                            _mm512_madd_epi16(_mm512_set1_epi32(static_cast<int>(left)), right));
  }
};

#elif defined(__AVX2__)

struct byte_sums {
  using vector = __m256i;
  static constexpr int lanes = 8, group = 2, rows = 6;
  static vector zero() { return _mm256_setzero_si256(); }
  static vector load(const std::uint32_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static void store(std::int32_t* p, vector a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a);
  }
  static vector add(vector sum, std::uint32_t left, vector right) {
    return _mm256_add_epi32(sum,
                            _mm256_madd_epi16(_mm256_set1_epi32(static_cast<int>(left)), right));
  }
};

#elif defined(__SSE2__)

struct byte_sums {
  using vector = __m128i;
  static constexpr int lanes = 4, group = 2, rows = 6;
  static vector zero() { return _mm_setzero_si128(); }
  static vector load(const std::uint32_t* p) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  }
  static void store(std::int32_t* p, vector a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), a);
  }
  static vector add(vector sum, std::uint32_t left, vector right) {
    return _mm_add_epi32(sum, _mm_madd_epi16(_mm_set1_epi32(static_cast<int>(left)), right));
  }
};

#else

struct byte_sums {
  struct vector {
    std::uint32_t at[4];
  };
  static constexpr int lanes = 4, group = 2, rows = 6;
  static vector zero() { return {}; }
  static vector load(const std::uint32_t* p) {
    vector v;
    std::memcpy(v.at, p, sizeof v);
    return v;
  }
  static void store(std::int32_t* p, const vector& a) { std::memcpy(p, a.at, sizeof a); }
  static vector add(vector sum, std::uint32_t left, const vector& right) {
    const auto low = [](std::uint32_t w) { return std::int32_t(std::int16_t(w & 0xffffu)); };
    const auto high = [](std::uint32_t w) { return std::int32_t(std::int16_t(w >> 16)); };
    for (int i = 0; i < 4; ++i)
      sum.at[i] += std::uint32_t(low(left) * low(right.at[i]) + high(left) * high(right.at[i]));
    return sum;
  }
};

#endif

/// `count` (up to a group) bytes that lie `step` apart as a word of `Group` of them; zeros follow.
template <int Group, class Byte>
[[gnu::always_inline]] inline std::uint32_t group_of_bytes(const Byte* from, std::int64_t step,
                                                           int count) {
  constexpr int bits = 32 / Group;
  std::uint32_t word = 0;
  if (Group == 4 && step == 1 && count == 4) {
    std::memcpy(&word, from, 4);
    return word;
  }
  constexpr std::uint32_t mask = bits == 8 ? 0xffu : 0xffffu;
  for (int k = 0; k < count; ++k)
    word |= (static_cast<std::uint32_t>(std::int32_t(from[k * step])) & mask) << (bits * k);
  return word;
}

/// Groups of four bytes that lie `step` apart, of `Width` columns side by side.
template <int Width, class Byte>
[[gnu::always_inline]] inline void groups_of_four(const Byte* from, std::int64_t step,
                                                  std::uint32_t* to) {
#if defined(__AVX512F__)
  static_assert(Width % 16 == 0);
  for (int j = 0; j < Width; j += 16) {
    // The masked forms: see native_lanes<float, 64>.
    const auto row = [&](int k) {
      return _mm512_maskz_cvtepu8_epi32(
          0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + k * step + j)));
    };
    const __m512i low = _mm512_or_si512(row(0), _mm512_maskz_slli_epi32(0xffff, row(1), 8));
    const __m512i high = _mm512_or_si512(_mm512_maskz_slli_epi32(0xffff, row(2), 16),
                                         _mm512_maskz_slli_epi32(0xffff, row(3), 24));
    _mm512_storeu_si512(to + j, _mm512_or_si512(low, high));
  }
#else
  for (int j = 0; j < Width; ++j) to[j] = group_of_bytes<4>(from + j, step, 4);
#endif
}

}  // namespace cella::cpu
