// The order of elements along an axis: by radix, whole or of its first places only.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cella/backend/cpu/rows/best_position.hpp>
#include <cella/backend/cpu/simd/simd.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

namespace cella::cpu {

/// Lines along the middle axis of [outer, extent, inner], of whose elements the places of the first
/// `count` in ascending or descending order are wanted.
struct order_extents {
  search_extents lines{};
  std::int64_t count{};
  bool descending{};
};

/// Units of work: lines; and bytes of scratch for each thread.
constexpr int order_units(const order_extents& e);
template <class T>
constexpr std::int64_t order_scratch(const order_extents& e);

/// Places along the lines in the order of their elements, y of shape [outer, count, inner]. Equal
/// elements keep their order, -0 is 0, and NaN is larger than all.
template <class T>
void order_lines(work_range units, const order_extents& e, const T* x, std::int64_t* y,
                 std::byte* scratch);

namespace detail {

/// A number without sign whose order among others is that of x.
template <class T>
[[gnu::always_inline]] inline auto order_key(T x, bool descending) {
  using key = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr key sign = key{1} << (8 * sizeof(T) - 1);
  key k;
  if constexpr (std::is_floating_point_v<T>) {
    const auto bits = std::bit_cast<key>(x + T(0));  // -0 becomes 0
    k = bits ^ ((key(0) - (bits >> (8 * sizeof(T) - 1))) | sign);
    if (x != x) k = std::numeric_limits<key>::max();
  } else {
    k = static_cast<key>(x) ^ sign;
  }
  return descending ? static_cast<key>(~k) : k;
}
template <class T>
using order_key_of = decltype(order_key(T{}, false));

template <class Key>
struct placed_key {
  Key key;
  std::uint32_t place;
  friend bool operator<(const placed_key& a, const placed_key& b) {
    if constexpr (sizeof(Key) == 4)
      return (std::uint64_t{a.key} << 32 | a.place) < (std::uint64_t{b.key} << 32 | b.place);
    else
      return a.key != b.key ? a.key < b.key : a.place < b.place;
  }
};

/// Lines that are shorter are sorted by comparisons.
inline constexpr std::int64_t least_radix = 96;
/// First places up to which they are kept in order all the time, so that few elements have to be
/// put among them.
constexpr bool picks_few(const order_extents& e) {
  return e.count <= 32 && 3 * e.count <= e.lines.extent;
}
/// First places up to which, and below which part of a line, the rest is not put in order.
constexpr bool picks(const order_extents& e) {
  return picks_few(e) || (e.count * 8 <= e.lines.extent && e.count <= 1024);
}
/// Places to choose from: when they are full, the worst are dropped.
constexpr std::int64_t picked_room(const order_extents& e) {
  return std::max<std::int64_t>(4 * e.count, 64);
}

/// Sorts n keys by digits of `Bits` bits from the lowest on, so that equal ones keep their order;
/// where they lie then. Digits that all keys share cost no pass.
template <int Bits, class Key>
placed_key<Key>* sort_by_digits(placed_key<Key>* from, placed_key<Key>* to, std::int64_t n) {
  constexpr int digits = (int(8 * sizeof(Key)) + Bits - 1) / Bits;
  constexpr std::size_t values = std::size_t{1} << Bits;
  const auto digit = [](Key k, int d) __attribute__((always_inline)) {
    return std::size_t(k >> (d * Bits)) & (values - 1);
  };
  // All digits are counted at once. Where keys share one, each would wait for the count before.
  Key differing{};
  for (std::int64_t i = 0; i < n; ++i) differing |= from[i].key ^ from[0].key;
  std::array<std::array<std::uint32_t, values>, std::size_t(digits)> behind{};
  for (std::int64_t i = 0; i < n; ++i) {
#pragma GCC unroll 8
    for (int d = 0; d < digits; ++d) ++behind[std::size_t(d)][digit(from[i].key, d)];
  }
  for (int d = 0; d < digits; ++d) {
    if (digit(differing, d) == 0) continue;
    std::uint32_t* const place = behind[std::size_t(d)].data();
    std::uint32_t sum = 0;
    for (std::size_t v = 0; v < values; ++v) sum += std::exchange(place[v], sum);
    for (std::int64_t i = 0; i < n; ++i) to[place[digit(from[i].key, d)]++] = from[i];
    std::swap(from, to);
  }
  return from;
}

/// From i on, the first of n elements side by side that may come before `bound` in the order, to
/// the next vector.
template <class T>
[[gnu::always_inline]] inline std::int64_t next_before(const T* x, std::int64_t i, std::int64_t n,
                                                       T bound, bool descending) {
  if constexpr (std::is_floating_point_v<T>) {
    constexpr int L = lanes<T>;
    for (const vec<T> b(bound); i + L <= n; i += L) {
      const vec<T> v = load_unaligned(x + i);
      if (descending ? greater(v, b) | unordered(v, v) : greater(b, v)) break;
    }
  }
  return i;
}

/// The first `count` of n elements, `stride` apart, in order.
template <class T>
placed_key<order_key_of<T>>* pick_first(const T* x, std::int64_t stride, const order_extents& e,
                                        placed_key<order_key_of<T>>* room) {
  using Key = order_key_of<T>;
  const std::int64_t most = picked_room(e);
  std::int64_t held = 0;
  Key bound{};
  bool bounded = false;
  for (std::int64_t i = 0; i < e.lines.extent; ++i) {
    if (bounded && stride == 1 && i % lanes<T> == 0) {
      const T worst = x[room[e.count - 1].place];
      if (worst == worst) i = next_before(x, i, e.lines.extent, worst, e.descending);
      if (i == e.lines.extent) break;
    }
    const Key k = order_key(x[i * stride], e.descending);
    // Of equal ones the first stay: what comes later must be better than the last of them.
    if (bounded && k >= bound) continue;
    room[held++] = {k, std::uint32_t(i)};
    if (held < most) continue;
    std::nth_element(room, room + e.count - 1, room + held);
    held = e.count;
    bound = room[held - 1].key;
    bounded = true;
  }
  std::partial_sort(room, room + e.count, room + held);
  return room;
}

/// The same for few of them.
template <class T>
placed_key<order_key_of<T>>* pick_few(const T* x, std::int64_t stride, const order_extents& e,
                                      placed_key<order_key_of<T>>* room) {
  const std::int64_t n = e.lines.extent, last = e.count - 1;
  std::int64_t held = 0;
  // Equal elements come behind those that are there.
  const auto take = [&](std::int64_t i) __attribute__((always_inline)) {
    const auto k = order_key(x[i * stride], e.descending);
    if (held == e.count && k >= room[last].key) return;
    held += held < e.count;
    std::int64_t j = held - 1;
    for (; j > 0 && k < room[j - 1].key; --j) room[j] = room[j - 1];
    room[j] = {k, std::uint32_t(i)};
  };
  std::int64_t i = 0;
  for (; i < e.count; ++i) take(i);
  if constexpr (std::is_floating_point_v<T>) {
    constexpr int L = lanes<T>;
    for (; stride == 1 && i + L <= n; i += L) {
      const T worst = x[room[last].place];
      const vec<T> v = load_unaligned(x + i), bound(worst);
      unsigned beats = worst != worst ? first_bits(L)
                       : e.descending ? greater(v, bound) | unordered(v, v)
                                      : greater(bound, v);
      for (; beats; beats &= beats - 1) take(i + std::countr_zero(beats));
    }
  }
  for (; i < n; ++i) take(i);
  return room;
}

}  // namespace detail

constexpr int order_units(const order_extents& e) {
  return e.count * e.lines.extent == 0 ? 0 : int(e.lines.outer * e.lines.inner);
}
template <class T>
constexpr std::int64_t order_scratch(const order_extents& e) {
  constexpr std::int64_t each = sizeof(detail::placed_key<detail::order_key_of<T>>);
  return each * (detail::picks(e) ? detail::picked_room(e) : 2 * e.lines.extent);
}

template <class T>
void order_lines(work_range units, const order_extents& e, const T* x, std::int64_t* y,
                 std::byte* scratch) {
  using placed = detail::placed_key<detail::order_key_of<T>>;
  const std::int64_t n = e.lines.extent, step = e.lines.inner;
  auto* const keys = reinterpret_cast<placed*>(scratch);
  for (std::int64_t line = units.first; line < units.last; ++line) {
    const T* const from = x + line / step * n * step + line % step;
    placed* ordered = keys;
    if (detail::picks_few(e)) {
      ordered = detail::pick_few(from, step, e, keys);
    } else if (detail::picks(e)) {
      ordered = detail::pick_first(from, step, e, keys);
    } else {
      for (std::int64_t i = 0; i < n; ++i)
        keys[i] = {detail::order_key(from[i * step], e.descending), std::uint32_t(i)};
      if (n < detail::least_radix)
        std::sort(keys, keys + n);
      else if (n < (1 << 14))
        ordered = detail::sort_by_digits<8>(keys, keys + n, n);
      else
        ordered = detail::sort_by_digits<11>(keys, keys + n, n);
    }
    std::int64_t* const to = y + line / step * e.count * step + line % step;
    for (std::int64_t i = 0; i < e.count; ++i) to[i * step] = ordered[i].place;
  }
}

}  // namespace cella::cpu
