// Words as large as a number of single precision that hold two numbers of bf16, the first in the
// lower half, and how such pairs are multiplied and added: by AVX512-BF16 twice as many at a time
// as numbers of single precision, elsewhere one after the other. Each product is exact and is added
// for itself, the second of a pair before the first; where there is the instruction, denormal
// numbers are zero.
#pragma once

#include <array>
#include <cella/backend/cpu/simd/storage.hpp>
#include <cstdint>

namespace cella::cpu {

namespace detail {
using word_bits = xsimd::batch<std::uint32_t>;
[[gnu::always_inline]] inline word_bits bits_of(vec<float> words) {
  return xsimd::bitwise_cast<word_bits>(words);
}
}  // namespace detail

/// The first and the second numbers of words.
[[gnu::always_inline]] inline vec<float> first_of_pairs(vec<float> words) {
  return xsimd::bitwise_cast<vec<float>>(detail::bits_of(words) << 16);
}
[[gnu::always_inline]] inline vec<float> second_of_pairs(vec<float> words) {
  return xsimd::bitwise_cast<vec<float>>(detail::bits_of(words) & detail::word_bits(0xffff0000u));
}
/// The words of two vectors of numbers, which are those of bf16 already.
[[gnu::always_inline]] inline vec<float> pair_up(vec<float> first, vec<float> second) {
  return xsimd::bitwise_cast<vec<float>>((detail::bits_of(first) >> 16) |
                                         detail::bits_of(second_of_pairs(second)));
}

/// sum + the products of the pairs in a and b.
[[gnu::always_inline]] inline vec<float> add_pairs(vec<float> a, vec<float> b, vec<float> sum) {
#if defined(__AVX512BF16__) && defined(__AVX512F__)
  const __m512 x = a, y = b;
  return _mm512_dpbf16_ps(sum, (__m512bh)x, (__m512bh)y);
#else
  sum = multiply_add(second_of_pairs(a), second_of_pairs(b), sum);
  return multiply_add(first_of_pairs(a), first_of_pairs(b), sum);
#endif
}
/// Adds a b to a sum, of words that hold so many summands.
template <int Summands, class T>
[[gnu::always_inline]] inline void add_words(vec<T>& sum, vec<T> a, vec<T> b) {
  if constexpr (Summands == 2)
    sum = add_pairs(a, b, sum);
  else
    add_product<T>(sum, a, b);
}

/// The words of two vectors in memory.
[[gnu::always_inline]] inline vec<float> load_pairs(const bfloat16* first, const bfloat16* second) {
#if defined(__AVX512BW__)
  // The masked forms: see native_lanes<float, 64>.
  alignas(64) static constexpr std::array<std::uint16_t, 32> in_turns = [] {
    std::array<std::uint16_t, 32> from{};
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = std::uint16_t(i / 2 + i % 2 * 16);
    return from;
  }();
  const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(first));
  const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(second));
  const __m512i both = _mm512_maskz_inserti64x4(0xff, _mm512_castsi256_si512(low), high, 1);
  return _mm512_castsi512_ps(
      _mm512_maskz_permutexvar_epi16(~0u, _mm512_load_si512(in_turns.data()), both));
#else
  return pair_up(load_stored<float>(first), load_stored<float>(second));
#endif
}

}  // namespace cella::cpu
