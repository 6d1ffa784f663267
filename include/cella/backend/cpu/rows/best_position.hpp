// Positions of the largest or smallest elements along an axis: argmax and argmin.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/simd/simd.hpp>
#include <cstdint>

namespace cella::cpu {

/// A tensor seen as [outer, extent, inner], to be searched along the middle axis.
struct search_extents {
  std::int64_t outer = 1;
  std::int64_t extent = 1;
  std::int64_t inner = 1;
};

/// Positions are counted in lanes of T, which hold them exactly up to here.
template <class T>
inline constexpr std::int64_t most_positions =
    std::int64_t{1} << std::min(std::numeric_limits<T>::digits, 62);

namespace detail {

/// The first best of `extent` elements, `stride` apart; the first NaN if there is one.
template <bool Largest, class T>
std::int64_t best_of(const T* x, std::int64_t extent, std::int64_t stride) {
  T best = x[0];
  std::int64_t at = 0;
  for (std::int64_t i = 1; i < extent && best == best; ++i) {
    const T v = x[i * stride];
    if (!(Largest ? v > best : v < best) && v == v) continue;
    best = v;
    at = i;
  }
  return at;
}

/// The best that each lane has seen, and where it stood.
template <bool Largest, class T>
struct best_so_far {
  vec<T> value, at;
  [[gnu::always_inline]] void see(vec<T> v, vec<T> where) {
    const unsigned better = Largest ? greater(v, value) : greater(value, v);
    value = select(better, v, value);
    at = select(better, where, at);
  }
};

/// Along `extent` rows, for `Vectors` vectors of columns of which the last holds `rest`. NaNs are
/// looked for in pairs of vectors, and only where there is one their columns are searched again.
template <bool Largest, int Vectors, class T, class Index>
[[gnu::always_inline]] inline void best_of_columns(const T* x, const search_extents& e, int rest,
                                                   Index* y) {
  constexpr int L = lanes<T>;
  const auto read = [&](const T* row, int v) {
    return v + 1 < Vectors || rest == L ? load_unaligned(row + v * L)
                                        : load_first(row + v * L, rest);
  };
  std::array<best_so_far<Largest, T>, std::size_t(Vectors)> best;
  for (int v = 0; v < Vectors; ++v) best[std::size_t(v)] = {read(x, v), vec<T>(T{0})};
  unsigned nan = 0;
  vec<T> where(T{0});
  const T* row = x;
  for (std::int64_t i = 0; i < e.extent; ++i, row += e.inner) {
    std::array<vec<T>, std::size_t(Vectors)> value;
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      value[std::size_t(v)] = read(row, v);
      best[std::size_t(v)].see(value[std::size_t(v)], where);
    }
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; v += 2)
      nan |= unordered(value[std::size_t(v)], value[std::size_t(std::min(v + 1, Vectors - 1))]);
    where = where + vec<T>(T{1});
  }
  const int columns = (Vectors - 1) * L + rest;
  alignas(vec<T>) T at[Vectors * L];
  for (int v = 0; v < Vectors; ++v) store(at + v * L, best[std::size_t(v)].at);
  for (int j = 0; j < columns; ++j) y[j] = static_cast<Index>(at[j]);
  if (!nan) return;
  for (int j = 0; j < columns; ++j)
    y[j] = static_cast<Index>(best_of<Largest>(x + j, e.extent, e.inner));
}

/// Of `extent` neighbouring elements, at least one vector of them.
template <bool Largest, class T>
std::int64_t best_of_row(const T* x, std::int64_t extent) {
  constexpr int L = lanes<T>;
  alignas(vec<T>) T value[L], at[L];
  for (int j = 0; j < L; ++j) at[j] = static_cast<T>(j);
  vec<T> where = load(at);
  best_so_far<Largest, T> best{load_unaligned(x), where};
  unsigned nan = unordered(best.value, best.value);
  std::int64_t i = L;
  for (; i + L <= extent; i += L) {
    where = where + vec<T>(static_cast<T>(L));
    const vec<T> v = load_unaligned(x + i);
    best.see(v, where);
    nan |= unordered(v, v);
  }
  if (nan) return best_of<Largest>(x, extent, 1);
  store(value, best.value);
  store(at, best.at);
  int lane = 0;
  for (int j = 1; j < L; ++j) {
    const bool better = Largest ? value[j] > value[lane] : value[j] < value[lane];
    if (better || (value[j] == value[lane] && at[j] < at[lane])) lane = j;
  }
  const auto found = static_cast<std::int64_t>(at[lane]);
  if (i == extent) return found;
  const std::int64_t behind = i + best_of<Largest>(x + i, extent - i, 1);
  const T v = x[behind];
  return (Largest ? v > value[lane] : v < value[lane]) || v != v ? behind : found;
}

}  // namespace detail

/// y[o][i] = position along the middle axis of the first largest (or smallest) x[o][.][i], or of
/// the first NaN. The extent is at most `most_positions<T>`.
template <bool Largest, class T, class Index>
[[gnu::noinline]] void best_positions(const search_extents& e, const T* x, Index* y) {
  constexpr int L = lanes<T>;
  for (std::int64_t o = 0; o < e.outer; ++o, x += e.extent * e.inner) {
    if (e.inner == 1) {
      *y++ = static_cast<Index>(e.extent >= L ? detail::best_of_row<Largest>(x, e.extent)
                                              : detail::best_of<Largest>(x, e.extent, 1));
      continue;
    }
    std::int64_t i = 0;
    for (; i + 4 * L <= e.inner; i += 4 * L)
      detail::best_of_columns<Largest, 4>(x + i, e, L, y + i);
    for (; i < e.inner; i += L)
      detail::best_of_columns<Largest, 1>(x + i, e, int(std::min<std::int64_t>(L, e.inner - i)),
                                          y + i);
    y += e.inner;
  }
}

}  // namespace cella::cpu
