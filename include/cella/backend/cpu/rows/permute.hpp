// Tensors with their axes in another order: rows are copied, or squares are transposed in
// registers.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/simd/compiled_once.hpp>
#include <cella/backend/cpu/simd/simd.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cella/graph/shape.hpp>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace cella::cpu {

/// The axes of the result, outermost first, and how far each moves in the source; axes that move
/// together are one. `column` is the axis of neighbours in the source: the last one where rows are
/// copied.
struct permutation_extents {
  int rank{};
  int column{};
  std::array<std::int64_t, max_rank> size{}, from{}, to{};

  constexpr std::int64_t columns() const { return size[std::size_t(column)]; }
  constexpr std::int64_t rows() const { return size[std::size_t(rank - 1)]; }
  constexpr bool copies_rows() const { return column == rank - 1; }
};

/// Result axis i is axis `permutation[i]` of a tensor of shape `source`.
template <class Axes>
constexpr permutation_extents permutation_of(const shape& source, const Axes& permutation) {
  permutation_extents e;
  const auto steps = row_major_strides(source);
  for (int i = 0; i < source.rank; ++i) {
    const auto axis = std::size_t(permutation[std::size_t(i)]);
    const std::int64_t size = source[int(axis)];
    if (size == 1) continue;
    const auto last = std::size_t(e.rank - 1);
    if (e.rank > 0 && e.from[last] == size * steps[axis]) {
      e.size[last] *= size;
      e.from[last] = steps[axis];
    } else {
      e.size[std::size_t(e.rank)] = size;
      e.from[std::size_t(e.rank++)] = steps[axis];
    }
  }
  if (e.rank == 0) e.size[std::size_t(e.rank++)] = e.from[0] = 1;
  std::int64_t n = 1;
  for (int d = e.rank; d-- > 0;) {
    e.to[std::size_t(d)] = n;
    n *= e.size[std::size_t(d)];
    if (e.from[std::size_t(d)] == 1) e.column = d;
  }
  return e;
}

/// The type by which elements of so many bytes are moved.
template <std::size_t Bytes>
using element_of_size = std::conditional_t<
    Bytes == 8, double,
    std::conditional_t<Bytes == 4, float,
                       std::conditional_t<Bytes == 2, std::uint16_t, std::uint8_t>>>;

namespace detail {

/// Bytes that one unit copies, about, where rows are copied.
inline constexpr std::int64_t permute_bytes = 1 << 14;
/// Results from this size on are written past the caches: whoever reads them finds them in memory
/// in any case, and lines that are written whole need not be read before.
inline constexpr std::int64_t permute_past_caches = 8 << 20;
/// Bytes ahead of which rows are then asked for: processors do not foresee rows that lie apart.
inline constexpr std::int64_t permute_ahead = 4096;

/// Rows of the source that are transposed together.
template <class T>
constexpr int strip() {
  if constexpr (sizeof(T) >= 4)
    return lanes<T>;
  else
    return 16;
}
template <class T>
constexpr std::int64_t rows_of_unit(const permutation_extents& e) {
  return std::max<std::int64_t>(1, permute_bytes / (e.rows() * std::int64_t{sizeof(T)}));
}
/// Turns of the axes that are neither rows nor columns.
constexpr std::int64_t outer_turns(const permutation_extents& e) {
  std::int64_t n = 1;
  for (int d = 0; d + 1 < e.rank; ++d) n *= d == e.column ? 1 : e.size[std::size_t(d)];
  return n;
}

/// Turns of the axes that are neither rows nor columns, in their order, and where each begins in
/// the source and in the result. From turn to turn nothing is divided.
class outer_walk {
 public:
  outer_walk(const permutation_extents& e, std::int64_t turn) {
    for (int d = e.rank - 1; d-- > 0;) {
      if (d == e.column) continue;
      const auto axis = std::size_t(d);
      loop& l = loops_[std::size_t(count_++)];
      l = {e.size[axis], turn == 0 ? 0 : turn % e.size[axis], e.from[axis], e.to[axis]};
      turn = turn == 0 ? 0 : turn / e.size[axis];
      from += l.turn * l.from;
      to += l.turn * l.to;
    }
  }
  void next() {
    for (int k = 0; k < count_; ++k) {  // the innermost first
      loop& l = loops_[std::size_t(k)];
      from += l.from;
      to += l.to;
      if (++l.turn < l.size) return;
      from -= l.size * l.from;
      to -= l.size * l.to;
      l.turn = 0;
    }
  }
  std::int64_t from{}, to{};

 private:
  struct loop {
    std::int64_t size{}, turn{}, from{}, to{};
  };
  std::array<loop, max_rank> loops_;
  int count_ = 0;
};

/// a[i], b[i] = x[2 i], x[2 i + 1]
template <class T>
[[gnu::noinline]] void take_pairs_apart(const T* __restrict x, std::int64_t n, T* __restrict a,
                                        T* __restrict b) {
  std::int64_t i = 0;
#if defined(__AVX__) && !defined(__AVX512F__)
  // Compilers take four permutations across the halves of a vector, where two within them do.
  if constexpr (std::is_same_v<T, float>) {
    for (; i + 8 <= n; i += 8) {
      const auto halves = [at = x + 2 * i](int first) __attribute__((always_inline)) {
        return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(at + first)),
                                    _mm_loadu_ps(at + first + 8), 1);
      };
      const __m256 u = halves(0), v = halves(4);
      _mm256_storeu_ps(a + i, _mm256_shuffle_ps(u, v, 0x88));
      _mm256_storeu_ps(b + i, _mm256_shuffle_ps(u, v, 0xdd));
    }
  }
#endif
  for (; i < n; ++i) {
    a[i] = x[2 * i];
    b[i] = x[2 * i + 1];
  }
}

/// A whole cache line, or what the machine's vectors hold of it.
template <bool PastCaches, class T>
[[gnu::always_inline]] inline void store_line(T* p, vec<T> a) {
#if defined(__AVX512F__)
  if constexpr (PastCaches && sizeof(vec<T>) == 64)
    return _mm512_stream_si512(reinterpret_cast<__m512i*>(p),
                               xsimd::bitwise_cast<xsimd::batch<std::int64_t>>(a));
#elif defined(__AVX__)
  if constexpr (PastCaches && sizeof(vec<T>) == 32)
    return _mm256_stream_si256(reinterpret_cast<__m256i*>(p),
                               xsimd::bitwise_cast<xsimd::batch<std::int64_t>>(a));
#endif
  store_unaligned(p, a);
}

/// Other threads see lines that were stored past the caches from here on.
inline void finish_lines([[maybe_unused]] bool past_caches) {
#if defined(__AVX__)
  if (past_caches) _mm_sfence();
#endif
}

/// Copies n elements past the caches, in whole vectors, and asks for those `ahead` elements
/// further.
template <class T>
void copy_row_past_caches(const T* x, std::int64_t n, std::int64_t ahead, T* y) {
  for (std::int64_t j = 0; j < n; j += lanes<T>) {
    __builtin_prefetch(x + j + ahead);
    store_line<true>(y + j, load_unaligned(x + j));
  }
}

/// y[i][j] = x[j][i] for i < columns, j < rows <= strip; rows lie `from` and `to` elements apart.
/// Walks along the rows of the source, so that reads are sequential; prefetching must be asked for
/// where stores pass the caches.
template <bool PastCaches, class T>
void transpose_strip(const T* x, std::int64_t from, std::int64_t columns, int rows, T* y,
                     std::int64_t to) {
  constexpr int L = strip<T>();
  std::int64_t i = 0;
  if (columns <= L / 4) {
    for (; i < columns; ++i) {
      for (int k = 0; k < rows; ++k) y[i * to + k] = x[k * from + i];
    }
    return;
  }
  if constexpr (sizeof(T) >= 4) {
    vec<T> square[L];
    for (; rows == L && i + L <= columns; i += L) {
      if constexpr (PastCaches) {
        for (int k = 0; k < L; ++k) __builtin_prefetch(x + k * from + i + 4 * L);
      }
#pragma GCC unroll 16
      for (int k = 0; k < L; ++k) square[k] = load_unaligned(x + k * from + i);
      transpose<T>(square);
#pragma GCC unroll 16
      for (int k = 0; k < L; ++k) store_line<PastCaches>(y + (i + k) * to, square[k]);
    }
    for (; i < columns; i += L) {
      const int wide = int(std::min<std::int64_t>(L, columns - i));
      for (int k = 0; k < L; ++k)
        square[k] = k < rows ? load_first(x + k * from + i, wide) : vec<T>(T(0));
      transpose<T>(square);
      for (int k = 0; k < wide; ++k) store_first(y + (i + k) * to, rows, square[k]);
    }
  } else if (rows == L) {
    for (; i < columns; ++i) {
      for (int k = 0; k < L; ++k) y[i * to + k] = x[k * from + i];
    }
  } else {
    for (; i < columns; ++i) {
      for (int k = 0; k < rows; ++k) y[i * to + k] = x[k * from + i];
    }
  }
}

}  // namespace detail

/// Units of work: some rows, or a strip of rows of one matrix.
template <class T>
constexpr int permute_units(const permutation_extents& e) {
  const std::int64_t outer = detail::outer_turns(e);
  if (outer * e.rows() * e.columns() == 0) return 0;  // there is nothing to move
  if (e.copies_rows()) {
    const std::int64_t each = detail::rows_of_unit<T>(e);
    return int((outer + each - 1) / each);
  }
  return int(outer * ((e.rows() + detail::strip<T>() - 1) / detail::strip<T>()));
}

/// Copies x to the dense y with its axes in another order. Elements are moved, not interpreted: T
/// says their size only.
template <class T>
[[gnu::noinline]] void permute(work_range units, const permutation_extents& e, const T* x, T* y) {
  const auto last = std::size_t(e.rank - 1);
  constexpr int L = detail::strip<T>();
  const std::int64_t bytes = e.size[0] * e.to[0] * std::int64_t{sizeof(T)};
  const bool past_caches = sizeof(T) >= 4 && bytes >= detail::permute_past_caches &&
                           reinterpret_cast<std::uintptr_t>(y) % 64 == 0 && e.rows() % L == 0;
  if (e.copies_rows()) {
    const std::int64_t each = detail::rows_of_unit<T>(e);
    const std::int64_t end = std::min(detail::outer_turns(e), units.last * each);
    const std::int64_t together = e.rank > 1 ? e.size[last - 1] : 1;
    const std::int64_t step = e.rank > 1 ? e.from[last - 1] : 0;
    const std::int64_t row_bytes = e.rows() * std::int64_t{sizeof(T)};
    const std::int64_t ahead = std::max(detail::permute_ahead / row_bytes, std::int64_t{1}) * step;
    for (std::int64_t r = units.first * each; r < end;) {
      const std::int64_t n = std::min(end - r, together - r % together);
      const T* from = x + detail::outer_walk(e, r).from;
      for (std::int64_t k = 0; k < n; ++k, ++r, from += step) {
        T* const to = y + r * e.rows();
        if constexpr (sizeof(T) >= 4) {
          if (past_caches) {
            detail::copy_row_past_caches(from, e.rows(), ahead, to);
            continue;
          }
        }
        std::memcpy(to, from, std::size_t(row_bytes));
      }
    }
    detail::finish_lines(past_caches);
    return;
  }
  const std::int64_t strips = (e.rows() + L - 1) / L, to = e.to[std::size_t(e.column)];
  detail::outer_walk at(e, units.first / strips);
  std::int64_t u = units.first % strips;
  for (std::int64_t left = units.last - units.first; left > 0; at.next(), u = 0) {
    // Strips [u, end) of a matrix.
    const std::int64_t end = std::min(strips, u + left);
    left -= end - u;
    if (e.columns() == 2 && e.from[last] == 2) {
      const std::int64_t first = u * L, rows = std::min(end * L, e.rows()) - first;
      T* const row = y + at.to + first;
      detail::take_pairs_apart(x + at.from + 2 * first, rows, row, row + to);
      continue;
    }
    for (; u < end; ++u) {
      const std::int64_t first = u * L;
      const int rows = int(std::min<std::int64_t>(L, e.rows() - first));
      const T* const from = x + at.from + first * e.from[last];
      if (past_caches)
        detail::transpose_strip<true>(from, e.from[last], e.columns(), rows, y + at.to + first, to);
      else
        detail::transpose_strip<false>(from, e.from[last], e.columns(), rows, y + at.to + first,
                                       to);
    }
  }
  detail::finish_lines(past_caches);
}
CELLA_COMPILED_FOR_FLOATS(permute);

}  // namespace cella::cpu
