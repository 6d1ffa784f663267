// Boxes of elements that are copied from one tensor into another.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/simd/simd.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cella/ops/move_row.hpp>
#include <cella/ops/strided.hpp>
#include <cella/plan/step.hpp>
#include <cstdint>
#include <cstring>
#include <utility>

namespace cella::cpu {

/// Loops over the elements of a box, outermost first, and how many elements each steps in the
/// source and in the target.
struct box_extents {
  int loops{};
  std::array<std::int64_t, max_loops> size{}, from{}, to{};
};

/// Units of work: some rows, which are the innermost loop.
template <class T>
constexpr int move_units(const box_extents& e);

/// Copies the elements of a box from x to y; zeros if x is null. Elements are moved, not
/// interpreted: T says their size only.
template <class T>
void move_box(work_range units, const box_extents& e, const T* x, T* y);

namespace detail {

template <class T>
constexpr std::int64_t rows_of_unit(const box_extents& e) {
  constexpr std::int64_t bytes = 1 << 14;
  const std::int64_t row = e.size[std::size_t(e.loops - 1)] * std::int64_t(sizeof(T));
  return std::max<std::int64_t>(1, bytes / row);
}

/// Copies some bytes by vectors, which end where lines of memory do in the target. (The library's
/// own way of copying some thousand, an instruction for whole strings, is ten times slower on some
/// processors where source and target lie badly.) Bytes are read before those in front of them are
/// written: where the addresses of source and target differ by little in their lower digits,
/// processors take what is written for what is read next and wait until it has got to the caches,
/// which takes three to five times as long.
inline void copy_bytes(const std::byte* x, std::int64_t bytes, std::byte* y) {
  constexpr std::int64_t each = sizeof(vec<float>), together = 128;
  constexpr int vectors = together / each;
  if (bytes < together) {
    std::memcpy(y, x, std::size_t(bytes));
    return;
  }
  // Its loops are unrolled, so that it lies in registers.
  struct block {
    vec<float> v[vectors];
  };
  const auto read = [&](std::int64_t i) __attribute__((always_inline)) {
    block b;
#pragma GCC unroll 8
    for (int k = 0; k < vectors; ++k)
      b.v[k] = load_unaligned(reinterpret_cast<const float*>(x + i + k * each));
    return b;
  };
  const auto write = [&](std::int64_t i, const block& b) __attribute__((always_inline)) {
#pragma GCC unroll 8
    for (int k = 0; k < vectors; ++k)
      store_unaligned(reinterpret_cast<float*>(y + i + k * each), b.v[k]);
  };
  // The first ones and the last ones may be written twice.
  block here = read(0);
  std::int64_t i = each - std::int64_t(reinterpret_cast<std::uintptr_t>(y) % each);
  if (i + together <= bytes) {
    const block next = read(i);
    write(0, here);
    here = next;
  } else {
    i = 0;
  }
  for (; i + 2 * together <= bytes; i += together) {
    const block next = read(i + together);
    write(i, here);
    here = next;
  }
  const block last = read(bytes - together);
  write(i, here);
  write(bytes - together, last);
}

/// Whether rows are so narrow that each is a line of memory or two, far from the next.
template <class T>
bool are_narrow(std::int64_t n, std::int64_t from_row, std::int64_t from, std::int64_t to_row,
                std::int64_t to) {
  constexpr std::int64_t few = 4, far = 128 / sizeof(T);
  return n <= few && from * from <= 1 && to == 1 && std::min(from_row, to_row) >= far;
}
/// The rows of `move_rows` where they are: each is read and written once, and those of some rows
/// ahead are asked for.
template <class T>
void move_narrow_rows(std::int64_t rows, std::int64_t n, const T* x, std::int64_t from_row,
                      std::int64_t from, T* y, std::int64_t to_row) {
  constexpr std::int64_t ahead = 16;
  for (std::int64_t j = 0; j < rows; ++j, x += from_row, y += to_row) {
    __builtin_prefetch(x + ahead * from_row);
    __builtin_prefetch(y + ahead * to_row, 1);
    for (std::int64_t i = 0; i < n; ++i) y[i] = x[i * from];
  }
}

/// y[j][i] = x[j][i] for `rows` rows of n elements, or zero; the strides are from row to row, and
/// within one.
template <class T>
void move_rows(std::int64_t rows, std::int64_t n, const T* x, std::int64_t from_row,
               std::int64_t from, T* y, std::int64_t to_row, std::int64_t to) {
  constexpr std::int64_t unit = sizeof(T);
  if (x && are_narrow<T>(n, from_row, from, to_row, to))
    return move_narrow_rows(rows, n, x, from_row, from, y, to_row);
  if (cella::detail::is_walked_across(n, rows)) {
    std::swap(n, rows);
    std::swap(from, from_row);
    std::swap(to, to_row);
  }
  for (std::int64_t j = 0; j < rows; ++j, y += to_row) {
    if (!x) {
      for (std::int64_t i = 0; i < n; ++i) y[i * to] = T{};
      continue;
    }
    const auto* const source = reinterpret_cast<const std::byte*>(x + j * from_row);
    auto* const target = reinterpret_cast<std::byte*>(y);
    if (from == 1 && to == 1)
      copy_bytes(source, n * unit, target);
    else
      cella::detail::move_row<sizeof(T)>(source, from, target, to, n);
  }
}

}  // namespace detail

template <class T>
constexpr int move_units(const box_extents& e) {
  std::int64_t rows = 1;
  for (int d = 0; d + 1 < e.loops; ++d) rows *= e.size[std::size_t(d)];
  const std::int64_t each = detail::rows_of_unit<T>(e);
  return int((rows + each - 1) / each);
}

template <class T>
[[gnu::noinline]] void move_box(work_range units, const box_extents& e, const T* x, T* y) {
  const auto inner = std::size_t(e.loops - 1);
  std::int64_t rows = 1;
  for (std::size_t d = 0; d < inner; ++d) rows *= e.size[d];
  const std::int64_t together = e.loops > 1 ? e.size[inner - 1] : 1;
  const std::int64_t from_row = e.loops > 1 ? e.from[inner - 1] : 0;
  const std::int64_t to_row = e.loops > 1 ? e.to[inner - 1] : 0;
  const std::int64_t each = detail::rows_of_unit<T>(e);
  const std::int64_t end = std::min(rows, units.last * each);
  for (std::int64_t r = units.first * each; r < end;) {
    const std::int64_t first = r % together, n = std::min(end - r, together - first);
    std::int64_t from = first * from_row, to = first * to_row, outer = r / together;
    for (int d = e.loops - 2; d-- > 0 && outer != 0;) {
      const auto axis = std::size_t(d);
      from += outer % e.size[axis] * e.from[axis];
      to += outer % e.size[axis] * e.to[axis];
      outer /= e.size[axis];
    }
    detail::move_rows(n, e.size[inner], x ? x + from : x, from_row, e.from[inner], y + to, to_row,
                      e.to[inner]);
    r += n;
  }
}

}  // namespace cella::cpu
