// How lines read their operands: where, and how elements follow each other there.
#pragma once

#include <cella/backend/cpu/simd/random_numbers.hpp>
#include <cella/backend/cpu/simd/storage.hpp>
#include <cella/plan/layout.hpp>
#include <cella/plan/step.hpp>
#include <cstdint>
#include <cstring>

namespace cella::cpu {

/// Where a value begins that is read in this way at a place of a result: its offset, row and
/// column; in elements, those of a row being `row_elements`.
constexpr std::int64_t place_of_read(access how, std::int64_t offset, std::int64_t row,
                                     std::int64_t column, std::int64_t row_elements = 1) {
  switch (how) {
    case access::same:
    case access::drawn:
      return offset;
    case access::row:
      return row * row_elements;
    case access::column:
      return column;
    default:
      return 0;
  }
}

/// How elements of a segment follow each other in memory.
enum class element_walk : std::uint8_t {
  contiguous,
  one,      ///< one number for all
  vector,   ///< one vector for each vector of them
  numbers,  ///< one number for each vector of them, evenly spaced
  spaced,
  drawn
};

/// `form`: of the values that a line computes. What is not plain comes in whole vectors, and loops
/// move by `along` elements from one to the next, as `in_elements` has it; kernels of the lanes by
/// so many channels.
constexpr element_walk walk_of(access how, layout form, std::int64_t along) {
  const bool plain = form == layout::plain;
  switch (how) {
    case access::same:
    case access::column:
      return element_walk::contiguous;
    case access::moving:
      return plain || along != 0 ? element_walk::contiguous : element_walk::vector;
    case access::fixed:
      return plain || along == 0 ? element_walk::one : element_walk::numbers;
    case access::row:
      if (form == layout::blocked) return element_walk::vector;
      return form == layout::lanes && along != 0 ? element_walk::numbers : element_walk::one;
    case access::strided:
      return element_walk::spaced;
    case access::drawn:
      return element_walk::drawn;
    default:
      return element_walk::one;
  }
}

/// How a value is read that lies in memory as lines compute with it: where it begins, what an
/// offset, a row and a column add to that, and how far its vectors lie apart. `at` is null for all
/// others.
template <class T>
struct placed_read {
  const T* at{};
  std::int64_t offset{}, row{}, column{}, step{};
};
template <class T>
constexpr placed_read<T> placed_read_of(access how, layout form, const T* at, int lanes) {
  const element_walk walk = walk_of(how, form, form == layout::plain ? 1 : 0);
  const bool repeats = walk == element_walk::vector;
  if (!repeats && walk != element_walk::contiguous) return {};
  return {at, place_of_read(how, 1, 0, 0),
          place_of_read(how, 0, 1, 0, form == layout::blocked ? lanes : 1),
          place_of_read(how, 0, 0, 1), repeats ? 0 : lanes};
}

/// Brings `n` elements together at `to`: those from `first` on, which walk so, `apart` where they
/// are spaced. Random numbers are drawn from the stream at `stream`.
template <class T, class S>
[[gnu::always_inline]] inline void bring_together(element_walk walk, const S* from,
                                                  std::int64_t first, std::int64_t apart, T* to,
                                                  int n, const void* stream) {
  constexpr int L = lanes<T>;
  if (walk == element_walk::contiguous) {
    int i = 0;
    for (; i + L <= n; i += L) store_unaligned(to + i, load_stored<T>(from + first + i));
    if (i < n) store_unaligned(to + i, load_stored<T>(from + first + i, n - i));
  } else if (walk == element_walk::one) {
    const vec<T> number(static_cast<T>(from[first]));
    for (int i = 0; i < n; i += L) store_unaligned(to + i, number);
  } else if (walk == element_walk::vector) {
    const vec<T> same = load_stored<T>(from + first);
    for (int i = 0; i < n; i += L) store_unaligned(to + i, same);
  } else if (walk == element_walk::numbers) {
    for (int i = 0; i < n; i += L)
      store_unaligned(to + i, vec<T>(static_cast<T>(from[first + i / L * apart])));
  } else if (walk == element_walk::drawn) {
    std::uint64_t key;
    std::memcpy(&key, stream, sizeof key);
    for (int i = 0; i < n; i += L) store_unaligned(to + i, uniform_vector<T>(key, first + i));
  } else {
    for (int i = 0; i < n; ++i) to[i] = static_cast<T>(from[first + i * apart]);
    // The rest of the last vector is computed with, too.
    for (int i = n; i % L != 0; ++i) to[i] = T(0);
  }
}

}  // namespace cella::cpu
