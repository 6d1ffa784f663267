// Small tensors as values: all elements of a tensor in registers, for code without loops. Which
// element stands where is known to the compiler, so cutting, joining and transposing cost a shuffle
// or nothing.
#pragma once

#include <array>
#include <cella/backend/cpu/plan/element_map.hpp>
#include <cella/backend/cpu/simd/simd.hpp>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace cella::cpu {

namespace detail {

#if defined(__AVX2__) && defined(__FMA__)
/// Vectors of W lanes, down to 16 bytes.
template <class T, int W>
struct lanes_type {
  static constexpr int bytes = W * int(sizeof(T));
  using narrow = std::conditional_t<bytes == 16, xsimd::sse4_2, xsimd::avx2>;
  using type =
      std::conditional_t<W == lanes<T>, vec<T>,
                         xsimd::batch<T, std::conditional_t<W == lanes<T>, xsimd::sse4_2, narrow>>>;
};
inline constexpr int narrowest = 16;
#else
template <class T, int W>
struct lanes_type {
  using type = vec<T>;
};
inline constexpr int narrowest = 64;
#endif
template <class T>
struct lanes_type<T, 1> {
  using type = T;
};

}  // namespace detail

/// Up to so many elements stand alone: to put them into a vector and take them out again costs more
/// than a vector saves.
inline constexpr int most_single = 4;

/// How many lanes the registers of a tensor of `n` elements have; 1: each element has its own.
/// Only numbers of type float and double share registers.
template <class T>
constexpr int register_width(std::int64_t n) {
  if constexpr (std::is_floating_point_v<T>) {
    if (n <= most_single) return 1;
    int w = lanes<T>;
    while (w / 2 >= n && w / 2 * int(sizeof(T)) >= detail::narrowest) w /= 2;
    return w;
  }
  return 1;
}
/// The narrowest vector for a few numbers: four lanes, or as many as there are. Others have none.
template <class T>
inline constexpr int narrow_width = [] {
  if constexpr (!std::is_floating_point_v<T>)
    return 0;
  else
    return int(sizeof(T)) * most_single >= detail::narrowest ? most_single : lanes<T>;
}();

/// N elements in registers of W lanes. Lanes beyond the last element hold anything. `Unit` is the
/// type of a register: a number, a vector, or a vector of truth values.
template <class T, int N, int W, class Unit = typename detail::lanes_type<T, W>::type>
struct packed {
  using number = T;
  using unit = Unit;
  static constexpr int size = N;
  static constexpr int width = W;
  static constexpr int units = (N + W - 1) / W;
  unit u[units];
};

/// Values of tensors of N elements: how they are held.
template <class T, int N>
using packed_of = packed<T, N, register_width<T>(N)>;
/// The vectors of which they are made, if they are.
template <class T, int N>
using wide_type =
    typename detail::lanes_type<T,
                                register_width<T>(N) == 1 ? lanes<T> : register_width<T>(N)>::type;

// ---- elements

template <int K, class X, class... Y>
[[gnu::always_inline]] constexpr const auto& nth(const X& x, const Y&... y) {
  if constexpr (K == 0)
    return x;
  else
    return nth<K - 1>(y...);
}

/// Element I.
template <int I, class T, int N, int W, class U>
[[gnu::always_inline]] inline T element_of(const packed<T, N, W, U>& x) {
  if constexpr (W == 1)
    return x.u[I];
  else if constexpr (std::is_same_v<T, bool>)
    return x.u[I / W].get(I % W);
  else
    return x.u[I / W].data[I % W];
}

namespace detail {

/// How one vector is put together: shuffles of the operands' registers one after the other, or
/// element by element. A single number counts as a register that holds it in every lane, and of a
/// wider register a part of `width` lanes counts as one.
struct shuffle_plan {
  bool by_element = false;
  int count{};                                 ///< registers
  std::array<element_source, 16> from{};       ///< operand and register; operand -1: zeros
  std::array<std::array<int, 16>, 16> lane{};  ///< the shuffle that takes in register k
};
template <std::size_t Operands>
constexpr shuffle_plan plan_shuffle(span<const element_source> map, int first, int width,
                                    const std::array<int, Operands>& widths) {
  shuffle_plan p;
  std::array<int, 16> placed{};  // 1 + register that fills a lane
  std::array<int, 16> own{};
  int single = 0;
  for (int l = 0; l < width && first + l < int(map.size()); ++l) {
    const element_source s = map[std::size_t(first + l)];
    const int w = s.operand < 0 ? width : std::min(width, widths[std::size_t(s.operand)]);
    const element_source r{s.operand, std::int16_t(s.operand < 0 ? 0 : s.element / w)};
    int k = 0;
    while (k < p.count && p.from[std::size_t(k)] != r) ++k;
    if (k == p.count) {
      p.from[std::size_t(p.count++)] = r;
      single += s.operand >= 0 && w == 1;
    }
    placed[std::size_t(l)] = k + 1;
    own[std::size_t(l)] = s.operand < 0 || w == 1 ? l : s.element % w;
  }
  p.by_element = single > 2 && single == p.count;
  for (int k = 0; k < p.count; ++k) {
    for (int l = 0; l < width; ++l) {
      const int by = placed[std::size_t(l)] - 1;
      int& to = p.lane[std::size_t(k)][std::size_t(l)];
      if (k == 0)
        to = by == 0 ? own[std::size_t(l)] : -1;
      else if (k == 1)
        to = by == 0 ? own[std::size_t(l)] : by == 1 ? width + own[std::size_t(l)] : -1;
      else
        to = by < 0 || by > k ? -1 : by < k ? l : width + own[std::size_t(l)];
    }
  }
  return p;
}

/// The moved elements of `X`: `Map::value` says where each comes from.
template <class Map, class T, int W, class... X>
struct rearrangement {
  using unit = typename lanes_type<T, W>::type;
  static constexpr auto& map = Map::value;
  static constexpr std::array<int, sizeof...(X)> widths{X::width...};

  template <int E>
  [[gnu::always_inline]] static T pick(const X&... x) {
    constexpr element_source s = map[std::size_t(E < int(map.size()) ? E : 0)];
    if constexpr (s.operand < 0)
      return T(0);
    else
      return element_of<s.element>(nth<s.operand>(x...));
  }
  /// A register of another width as one of W lanes; those that it lacks hold anything.
  template <int Part, int Own, class V, std::size_t... L>
  [[gnu::always_inline]] static unit resized(const V& v, std::index_sequence<L...>) {
    return unit(
        __builtin_shufflevector(v.data, v.data, (int(L) < Own ? Part * W + int(L) : -1)...));
  }
  template <element_source S>
  [[gnu::always_inline]] static unit source(const X&... x) {
    if constexpr (S.operand < 0) {
      return unit(T(0));
    } else {
      constexpr int w = widths[std::size_t(S.operand)];
      const auto& from = nth<S.operand>(x...);
      constexpr auto all = std::make_index_sequence<std::size_t(W)>{};
      if constexpr (w == 1)
        return unit(from.u[S.element]);
      else if constexpr (w == W)
        return from.u[S.element];
      else if constexpr (w < W)
        return resized<0, w>(from.u[S.element], all);
      else
        return resized<S.element % (w / W), W>(from.u[S.element / (w / W)], all);
    }
  }
  template <int U, int K, std::size_t... L>
  [[gnu::always_inline]] static unit shuffled(unit a, unit b, std::index_sequence<L...>) {
    constexpr auto plan = plan_shuffle(span<const element_source>(map), U * W, W, widths);
    return unit(__builtin_shufflevector(a.data, b.data, plan.lane[std::size_t(K)][L]...));
  }
  template <int U, int K>
  [[gnu::always_inline]] static unit with(unit a, const X&... x) {
    constexpr auto plan = plan_shuffle(span<const element_source>(map), U * W, W, widths);
    if constexpr (K == plan.count) {
      return a;
    } else {
      const unit b = source<plan.from[std::size_t(K)]>(x...);
      return with<U, K + 1>(shuffled<U, K>(a, b, std::make_index_sequence<std::size_t(W)>{}), x...);
    }
  }
  template <int U, std::size_t... L>
  [[gnu::always_inline]] static unit from_elements(std::index_sequence<L...>, const X&... x) {
    return unit(typename unit::register_type{pick<U * W + int(L)>(x...)...});
  }

  template <int U>
  [[gnu::always_inline]] static unit make(const X&... x) {
    if constexpr (W == 1) {
      return pick<U>(x...);
    } else {
      constexpr auto plan = plan_shuffle(span<const element_source>(map), U * W, W, widths);
      if constexpr (plan.by_element) {
        return from_elements<U>(std::make_index_sequence<std::size_t(W)>{}, x...);
      } else {
        const unit a = source<plan.from[0]>(x...);
        const unit b = shuffled<U, 0>(a, a, std::make_index_sequence<std::size_t(W)>{});
        if constexpr (plan.count == 1)
          return b;
        else
          return with<U, 1>(a, x...);
      }
    }
  }
  template <class Y, std::size_t... U>
  [[gnu::always_inline]] static void fill(Y& y, std::index_sequence<U...>, const X&... x) {
    ((y.u[U] = make<int(U)>(x...)), ...);
  }
};

}  // namespace detail

/// y's elements are elements of `x...`, or zeros, as the table `Map::value` says, which has one
/// entry per element of y.
template <class Map, class T, int N, int W, class... X>
[[gnu::always_inline]] inline void rearrange(packed<T, N, W>& y, const X&... x) {
  detail::rearrangement<Map, T, W, X...>::fill(
      y, std::make_index_sequence<std::size_t((N + W - 1) / W)>{}, x...);
}

// ---- memory

/// Loads from, and stores to, consecutive elements at p. Touches nothing beyond them. A mask is
/// stored as one byte per truth value.
template <int U = 0, int N, int W, class M>
requires(W > 1)
    [[gnu::always_inline]] inline void load_packed(packed<bool, N, W, M>& x, const bool* p) {
  if constexpr (U * W < N) {
    using vector = typename M::batch_type;
    using number = typename vector::value_type;
    x.u[U] = [&]<std::size_t... L>(std::index_sequence<L...>) {
      return vector(typename vector::register_type{
                 (U * W + int(L) < N ? number(p[U * W + int(L)]) : number(0))...}) !=
             vector(number(0));
    }
    (std::make_index_sequence<std::size_t(W)>{});
    load_packed<U + 1>(x, p);
  }
}
template <int I = 0, int N, int W, class M>
requires(W > 1)
    [[gnu::always_inline]] inline void store_packed(const packed<bool, N, W, M>& x, bool* p) {
  if constexpr (I < N) {
    p[I] = element_of<I>(x);
    store_packed<I + 1>(x, p);
  }
}
template <int U = 0, class T, int N, int W>
[[gnu::always_inline]] inline void load_packed(packed<T, N, W>& x, const T* p) {
  if constexpr (U * W < N) {
    using unit = typename packed<T, N, W>::unit;
    if constexpr (W == 1)
      x.u[U] = p[U];
    else if constexpr ((U + 1) * W <= N)
      x.u[U] = unit::load_unaligned(p + U * W);
    else if constexpr (W == lanes<T>)
      x.u[U] = load_first(p + U * W, N - U * W);
    else
      x.u[U] = [&]<std::size_t... L>(std::index_sequence<L...>) {
        return unit(
            typename unit::register_type{(U * W + int(L) < N ? p[U * W + int(L)] : T(0))...});
      }
    (std::make_index_sequence<std::size_t(W)>{});
    load_packed<U + 1>(x, p);
  }
}
template <int U = 0, class T, int N, int W>
[[gnu::always_inline]] inline void store_packed(const packed<T, N, W>& x, T* p) {
  if constexpr (U * W < N) {
    if constexpr (W == 1)
      p[U] = x.u[U];
    else if constexpr ((U + 1) * W <= N)
      x.u[U].store_unaligned(p + U * W);
    else if constexpr (W == lanes<T>)
      store_first(p + U * W, N - U * W, x.u[U]);
    else
      [&]<std::size_t... L>(std::index_sequence<L...>) {
        ((U * W + int(L) < N ? void(p[U * W + int(L)] = x.u[U].data[int(L)]) : void()), ...);
      }
    (std::make_index_sequence<std::size_t(W)>{});
    store_packed<U + 1>(x, p);
  }
}

}  // namespace cella::cpu
