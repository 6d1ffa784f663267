// The order of elements along an axis, as places or as the elements themselves: by radix, whole or
// of its first ones only.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cella/backend/cpu/rows/best_position.hpp>
#include <cella/backend/cpu/simd/simd.hpp>
#include <cella/backend/host/work_range.hpp>
#include <concepts>
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
/// The elements themselves: what was read at these places. -0 comes before 0, where all are wanted.
template <class T>
void sort_lines(work_range units, const order_extents& e, const T* x, T* y, std::byte* scratch);

namespace detail {

/// A number without sign whose order among others is that of x; -0 is less than 0.
template <class T>
[[gnu::always_inline]] inline auto key_of_element(T x, bool descending) {
  using key = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr key sign = key{1} << (8 * sizeof(T) - 1);
  key k;
  if constexpr (std::is_floating_point_v<T>) {
    const auto bits = std::bit_cast<key>(x);
    k = bits ^ ((key(0) - (bits >> (8 * sizeof(T) - 1))) | sign);
    if (x != x) k = std::numeric_limits<key>::max();
  } else {
    k = static_cast<key>(x) ^ sign;
  }
  return descending ? static_cast<key>(~k) : k;
}
template <class T>
using order_key_of = decltype(key_of_element(T{}, false));
/// The same, but -0 is 0.
template <class T>
[[gnu::always_inline]] inline order_key_of<T> order_key(T x, bool descending) {
  return key_of_element(static_cast<T>(x + T(0)), descending);
}
/// The element that has this key.
template <class T>
[[gnu::always_inline]] inline T element_of_key(order_key_of<T> k, bool descending) {
  using key = order_key_of<T>;
  constexpr key sign = key{1} << (8 * sizeof(T) - 1);
  if (descending) k = static_cast<key>(~k);
  if constexpr (std::is_floating_point_v<T>)
    return std::bit_cast<T>(static_cast<key>(k & sign ? k ^ sign : ~k));
  else
    return static_cast<T>(k ^ sign);
}

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

template <class Key>
constexpr Key key_of(const placed_key<Key>& k) {
  return k.key;
}
template <std::unsigned_integral Key>
constexpr Key key_of(Key k) {
  return k;
}

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

/// Sorts n keys, with their places or without, by digits of `Bits` bits from the lowest on, so that
/// equal ones keep their order; where they lie then. Digits that all keys share cost no pass.
template <int Bits, class Item>
Item* sort_by_digits(Item* from, Item* to, std::int64_t n) {
  using Key = decltype(key_of(*from));
  constexpr int digits = (int(8 * sizeof(Key)) + Bits - 1) / Bits;
  constexpr std::size_t values = std::size_t{1} << Bits;
  const auto digit = [](Key k, int d) __attribute__((always_inline)) {
    return std::size_t(k >> (d * Bits)) & (values - 1);
  };
  // All digits are counted at once. Where keys share one, each would wait for the count before.
  Key differing{};
  for (std::int64_t i = 0; i < n; ++i) differing |= key_of(from[i]) ^ key_of(from[0]);
  std::array<std::array<std::uint32_t, values>, std::size_t(digits)> behind{};
  for (std::int64_t i = 0; i < n; ++i) {
#pragma GCC unroll 8
    for (int d = 0; d < digits; ++d) ++behind[std::size_t(d)][digit(key_of(from[i]), d)];
  }
  for (int d = 0; d < digits; ++d) {
    if (digit(differing, d) == 0) continue;
    std::uint32_t* const place = behind[std::size_t(d)].data();
    std::uint32_t sum = 0;
    for (std::size_t v = 0; v < values; ++v) sum += std::exchange(place[v], sum);
    for (std::int64_t i = 0; i < n; ++i) to[place[digit(key_of(from[i]), d)]++] = from[i];
    std::swap(from, to);
  }
  return from;
}
/// Sorts n keys, with as much room behind them; where they lie then.
template <class Item>
Item* sort_keys(Item* keys, std::int64_t n) {
  if (n >= 1 << 14) return sort_by_digits<11>(keys, keys + n, n);
  if (n >= least_radix) return sort_by_digits<8>(keys, keys + n, n);
  std::sort(keys, keys + n);
  return keys;
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

namespace detail {

/// Calls f(a line of x, the same of y, whose elements are `step` apart).
template <class T, class Y, class F>
void for_each_line(work_range units, const order_extents& e, const T* x, Y* y, F f) {
  const std::int64_t n = e.lines.extent, step = e.lines.inner;
  for (std::int64_t line = units.first; line < units.last; ++line)
    f(x + line / step * n * step + line % step, y + line / step * e.count * step + line % step);
}
/// Keys and places of a line's first ones, in order.
template <class T>
const placed_key<order_key_of<T>>* ordered_line(const T* x, const order_extents& e,
                                                placed_key<order_key_of<T>>* keys) {
  const std::int64_t n = e.lines.extent, step = e.lines.inner;
  if (picks_few(e)) return pick_few(x, step, e, keys);
  if (picks(e)) return pick_first(x, step, e, keys);
  for (std::int64_t i = 0; i < n; ++i)
    keys[i] = {order_key(x[i * step], e.descending), std::uint32_t(i)};
  return sort_keys(keys, n);
}

}  // namespace detail

template <class T>
void order_lines(work_range units, const order_extents& e, const T* x, std::int64_t* y,
                 std::byte* scratch) {
  auto* const keys = reinterpret_cast<detail::placed_key<detail::order_key_of<T>>*>(scratch);
  detail::for_each_line(units, e, x, y, [&](const T* from, std::int64_t* to) {
    const auto* const ordered = detail::ordered_line(from, e, keys);
    for (std::int64_t i = 0; i < e.count; ++i) to[i * e.lines.inner] = ordered[i].place;
  });
}

template <class T>
void sort_lines(work_range units, const order_extents& e, const T* x, T* y, std::byte* scratch) {
  using key = detail::order_key_of<T>;
  const std::int64_t n = e.lines.extent, step = e.lines.inner;
  detail::for_each_line(units, e, x, y, [&](const T* from, T* to) {
    if (detail::picks(e)) {
      auto* const keys = reinterpret_cast<detail::placed_key<key>*>(scratch);
      const auto* const ordered = detail::ordered_line(from, e, keys);
      for (std::int64_t i = 0; i < e.count; ++i) to[i * step] = from[ordered[i].place * step];
      return;
    }
    auto* const keys = reinterpret_cast<key*>(scratch);
    for (std::int64_t i = 0; i < n; ++i)
      keys[i] = detail::key_of_element(from[i * step], e.descending);
    const key* const ordered = detail::sort_keys(keys, n);
    for (std::int64_t i = 0; i < e.count; ++i)
      to[i * step] = detail::element_of_key<T>(ordered[i], e.descending);
  });
}

}  // namespace cella::cpu
