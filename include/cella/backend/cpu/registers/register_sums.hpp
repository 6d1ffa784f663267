// Sums, products of matrices and extrema of tensors that lie in registers.
#pragma once

#include <cella/backend/cpu/registers/register_code.hpp>

namespace cella::cpu {

namespace detail {

template <int First, int Count, class T, int N, class U>
[[gnu::always_inline]] inline T sum_of_elements(const packed<T, N, 1, U>& x) {
  if constexpr (Count == 1)
    return x.u[First];
  else
    return add_op::apply(sum_of_elements<First, Count / 2>(x),
                         sum_of_elements<First + Count / 2, Count - Count / 2>(x));
}
template <int First, int Count, class P>
[[gnu::always_inline]] inline auto sum_of_registers(const P& x) {
  if constexpr (Count == 1)
    return x.u[First];
  else
    return sum_of_registers<First, Count / 2>(x) +
           sum_of_registers<First + Count / 2, Count - Count / 2>(x);
}
template <int Kept, class V, std::size_t... L>
[[gnu::always_inline]] inline V with_zeros(V x, std::index_sequence<L...>) {
  const V zero(typename V::value_type(0));
  return V(__builtin_shufflevector(x.data, zero.data,
                                   (int(L) < Kept ? int(L) : int(V::size) + int(L))...));
}

}  // namespace detail

/// Sum of all elements, by halves.
template <class T, int N, int W>
[[gnu::always_inline]] inline T sum_of(packed<T, N, W> x) {
  if constexpr (W == 1) {
    return detail::sum_of_elements<0, N>(x);
  } else {
    if constexpr (N % W != 0)
      x.u[N / W] =
          detail::with_zeros<N % W>(x.u[N / W], std::make_index_sequence<std::size_t(W)>{});
    return xsimd::hadd(detail::sum_of_registers<0, packed<T, N, W>::units>(x));
  }
}

/// Node N of program P, a sum or a product of matrices.
template <class P, node_id N>
struct register_contraction {
  static constexpr int terms = int(contraction_of<P, N>.terms());

  template <int T, class Y, class... X>
  [[gnu::always_inline]] static Y term(const X&... x) {
    return term_of<T, Y>(std::make_integer_sequence<int, int(sizeof...(X))>{}, x...);
  }
  template <int T, class Y, int... K, class... X>
  [[gnu::always_inline]] static Y term_of(std::integer_sequence<int, K...>, const X&... x) {
    std::array<Y, sizeof...(X)> moved;
    (rearrange<term_table<P, N, K, T>>(moved[std::size_t(K)], x), ...);
    if constexpr (sizeof...(X) == 2) multiply(moved[0], moved[1]);
    return moved[0];
  }
  template <class Y>
  [[gnu::always_inline]] static void multiply(Y& x, const Y& y) {
    each<Y>(
        [](auto& a, const auto& b) __attribute__((always_inline)) { a = a * b; }, x, y);
  }
  template <class Y>
  [[gnu::always_inline]] static void add(Y& x, const Y& y) {
    each<Y>(
        [](auto& a, const auto& b) __attribute__((always_inline)) { a = add_op::apply(a, b); }, x,
        y);
  }
  template <class Y, int U = 0, class F>
  [[gnu::always_inline]] static void each(F f, Y& x, const Y& y) {
    if constexpr (U < Y::units) {
      f(x.u[U], y.u[U]);
      each<Y, U + 1>(f, x, y);
    }
  }
  /// Terms one after the other in fours, those by halves: short chains, few values at once.
  template <int First, int Count, class Y, class... X>
  [[gnu::always_inline]] static Y sum_of_terms(const X&... x) {
    if constexpr (Count == 1) {
      return term<First, Y>(x...);
    } else {
      constexpr int left = Count <= 4 ? Count - 1 : (Count / 2 + 3) / 4 * 4;
      Y y = sum_of_terms<First, left, Y>(x...);
      add(y, sum_of_terms<First + left, Count - left, Y>(x...));
      return y;
    }
  }

  /// Each result from vectors of all its terms.
  template <int E, class Y, int... K, class... X>
  [[gnu::always_inline]] static void result(Y& y, std::integer_sequence<int, K...> k,
                                            const X&... x) {
    if constexpr (E < Y::size) {
      using number = typename Y::number;
      std::array<packed_of<number, terms>, sizeof...(X)> moved;
      (rearrange<result_table<P, N, K, E>>(moved[std::size_t(K)], x), ...);
      if constexpr (sizeof...(X) == 2) multiply(moved[0], moved[1]);
      y.u[E] = sum_of(moved[0]);
      result<E + 1>(y, k, x...);
    }
  }
  template <class Y, class... X>
  [[gnu::always_inline]] static void run(Y& y, const X&... x) {
    if constexpr (Y::width == 1 && ((X::width > 1) || ...))
      result<0>(y, std::make_integer_sequence<int, int(sizeof...(X))>{}, x...);
    else
      y = sum_of_terms<0, terms, Y>(x...);
  }

  /// The largest or smallest of the terms of result E: NaN if one is.
  template <bool Largest, int E, int First, int Count, class X>
  [[gnu::always_inline]] static auto extreme_of(const X& x) {
    if constexpr (Count == 1) {
      return element_of<contraction_of<P, N>.element(0, E, First)>(x);
    } else {
      const auto a = extreme_of<Largest, E, First, Count / 2>(x);
      const auto b = extreme_of<Largest, E, First + Count / 2, Count - Count / 2>(x);
      return (Largest ? b > a : b < a) || b != b ? b : a;
    }
  }
  template <bool Largest, class Y, class X, int... E>
  [[gnu::always_inline]] static void extremes(Y& y, const X& x, std::integer_sequence<int, E...>) {
    using number = typename Y::number;
    const packed<number, Y::size, 1, number> single{{extreme_of<Largest, E, 0, terms>(x)...}};
    rearrange<identity_table<Y::size>>(y, single);
  }
};

}  // namespace cella::cpu
