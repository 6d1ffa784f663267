// Products of bf16 in pairs of summands, which AVX512-BF16 multiplies and adds twice as many at a
// time as it does numbers of single precision. A panel holds words: two neighbouring summands of an
// element of A or B, the first in the lower half, in the place of one number. So tiles, panels and
// blocks are those of single precision at half the depth. Each product is added for itself, the
// second of a pair before the first, rounded to single precision; denormal numbers are zero.
// Elsewhere operands become single precision when they are packed, and summands keep their order.
// A matrix unit takes the same strips of B, of whole tiles, and A row by row (unit_tile.hpp).
#pragma once

#include <cella/backend/cpu/gemm/operand.hpp>
#include <cella/backend/cpu/simd/matrix_unit.hpp>
#include <cella/backend/cpu/simd/pairs.hpp>
#include <cstring>
#include <type_traits>

namespace cella::cpu {

/// Summands in a word of a panel, of operands that are stored as S.
template <class S>
inline constexpr int summands_of_word = 1;

template <>
inline constexpr int summands_of_word<bfloat16> = multiplies_pairs ? 2 : 1;

/// The matrix unit that multiplies operands that are stored as S; void: vectors do.
template <class S>
struct unit_of {
  using type = void;
};
template <>
struct unit_of<bfloat16> {
  using type = matrix_unit;
};
template <class S>
inline constexpr bool on_unit = !std::is_void_v<typename unit_of<S>::type>;

/// Panels are so many words deep, or a multiple.
template <class S>
inline constexpr int words_together = on_unit<S> ? unit_words : 1;

/// Words of so many summands: those that are missing in the last ones are zero.
template <class S>
constexpr int words_of(int summands) {
  constexpr int together = summands_of_word<S> * words_together<S>;
  return (summands + together - 1) / together * words_together<S>;
}

namespace detail {

/// Two summands as a word.
inline void store_pair(bfloat16 first, bfloat16 second, float* to) {
  const std::uint32_t word = first.bits | std::uint32_t{second.bits} << 16;
  std::memcpy(to, &word, sizeof word);
}

/// pack_row() of the words of two rows; the second may be null, and is zero then.
[[gnu::always_inline]] inline void pack_row_of_pairs(const bfloat16* first, const bfloat16* second,
                                                     int width, float* to, int panel) {
  int r = 0;
  if (second) {
    constexpr int L = lanes<float>;
    for (; r + L <= width; r += L) store_unaligned(to + r, load_pairs(first + r, second + r));
  }
  for (; r < width; ++r) store_pair(first[r], second ? second[r] : bfloat16{}, to + r);
  for (; r < panel; ++r) to[r] = 0;
}

}  // namespace detail

/// Rows of a panel that are zero, up to what words_of() counts.
template <class S, class T>
void pad_words(int depth, T* to, int panel) {
  const int words = (depth + summands_of_word<S> - 1) / summands_of_word<S>;
  std::fill(to + std::int64_t{words} * panel, to + std::int64_t{words_of<S>(depth)} * panel, T(0));
}

/// pack_panel() of words: (r, k) is that of the summands k * summands_of_word<S> and the next.
/// `depth` counts summands; what is missing in the last words is zero.
template <class T, class S>
void pack_words(int width, int depth, const S* from, std::int64_t width_stride,
                std::int64_t depth_stride, T* to, int panel) {
  if constexpr (summands_of_word<S> == 1) {
    pack_panel(width, depth, from, width_stride, depth_stride, to, panel);
  } else {
    pad_words<S>(depth, to, panel);
    int k = 0;
    // Pairs that lie together are words already.
    if (depth_stride == 1 && width_stride % 2 == 0) {
      k = depth / 2 * 2;
      pack_panel(width, k / 2, reinterpret_cast<const T*>(from), width_stride / 2, 1, to, panel);
    }
    for (to += std::int64_t{k} / 2 * panel; k < depth; k += 2, to += panel) {
      const S* const first = from + k * depth_stride;
      const S* const second = k + 1 < depth ? first + depth_stride : nullptr;
      if (width_stride == 1) {
        detail::pack_row_of_pairs(first, second, width, to, panel);
        continue;
      }
      for (int r = 0; r < width; ++r)
        detail::store_pair(first[r * width_stride], second ? second[r * width_stride] : S{},
                           to + r);
      for (int r = width; r < panel; ++r) to[r] = T(0);
    }
  }
}

/// pack_panels() of words: of `depth` rows, two at a time.
template <class T, class S>
void pack_words(const panel_pieces& pieces, int depth, const S* from, std::int64_t row, T* to,
                std::int64_t pitch, int panel) {
  if constexpr (summands_of_word<S> == 1) {
    pack_panels(pieces, depth, from, row, to, pitch, panel);
  } else {
    constexpr int line = 64 / int(sizeof(S)), lines_ahead = 32;
    const int length = pieces.sum();
    const std::int64_t ahead = std::max(2, lines_ahead * line / std::max(length, 2 * line)) * row;
    for (int p = 0; p < pieces.count; ++p) pad_words<S>(depth, to + p * pitch, panel);
    for (int k = 0; k < depth; k += 2, from += 2 * row, to += panel) {
      for (int r = 0; r < length; r += line) {
        __builtin_prefetch(from + ahead + r);
        __builtin_prefetch(from + ahead + row + r);
      }
      std::int64_t at = 0;
      for (int p = 0; p < pieces.count; at += pieces.of(p), ++p)
        detail::pack_row_of_pairs(from + at, k + 1 < depth ? from + row + at : nullptr,
                                  pieces.of(p), to + p * pitch, panel);
    }
  }
}

}  // namespace cella::cpu
