// Numbers of element types: how one becomes another, and integer arithmetic modulo 2^n, as
// processors have it but without undefined behaviour.
#pragma once

#include <cella/graph/dtype.hpp>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace cella {

template <class T>
inline constexpr bool is_complex_number = false;
template <class T>
inline constexpr bool is_complex_number<std::complex<T>> = true;

/// Converts to an element type; the half types go through float. What an integer type cannot hold
/// becomes its nearest value, and NaN becomes 0.
template <class T>
constexpr T from_double(double value) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    using limits = std::numeric_limits<T>;
    if (value != value) return T(0);
    if (value <= double(limits::min())) return limits::min();
    // The largest 64-bit integer has no double: the next one is its successor.
    if (value >= double(limits::max())) return limits::max();
    return static_cast<T>(value);
  } else if constexpr (is_complex_number<T>)
    return T(static_cast<typename T::value_type>(value));
  else if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(value);
  else
    return T(static_cast<float>(value));
}

/// The same from any number that was computed: an integer in an integer type keeps its low bits, a
/// complex number in another type its real part.
template <class T, class N>
constexpr T from_number(N value) {
  if constexpr (is_complex_number<N> && is_complex_number<T>)
    return static_cast<T>(value);
  else if constexpr (is_complex_number<N>)
    return from_double<T>(double(value.real()));
  else if constexpr (std::is_floating_point_v<N>)
    return from_double<T>(value);
  else if constexpr (is_complex_number<T>)
    return T(static_cast<typename T::value_type>(value));
  else if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(value);
  else
    return T(static_cast<float>(value));
}
/// And an element's number as one that is computed with.
template <class N, class T>
constexpr N to_number(T value) {
  if constexpr (is_complex_number<T> && !is_complex_number<N>)
    return static_cast<N>(value.real());
  else if constexpr (is_complex_number<N> && !is_complex_number<T>)
    return N(static_cast<double>(value));
  else
    return static_cast<N>(value);
}

/// Calls `f.template operator()<N>()` with the type in which reference computations compute numbers
/// of type `t`, without losing a digit: double, std::int64_t (truth values, too) or std::uint64_t.
/// They have an order. Precondition: !is_complex(t).
template <class F>
constexpr decltype(auto) with_wide_number(dtype t, F&& f) {
  if (is_floating(t)) return f.template operator()<double>();
  if (is_unsigned(t)) return f.template operator()<std::uint64_t>();
  return f.template operator()<std::int64_t>();
}

/// The same for sums and products, which std::complex<double> has, too.
template <class F>
constexpr decltype(auto) with_any_number(dtype t, F&& f) {
  if (is_complex(t)) return f.template operator()<std::complex<double>>();
  return with_wide_number(t, f);
}

namespace detail {

/// Integers; truth values are none.
template <class T>
inline constexpr bool is_whole = std::is_integral_v<T> && !std::is_same_v<T, bool>;

/// Where T is computed modulo 2^n: at least an `unsigned`, since narrower types would become `int`.
template <class T>
using residue = std::common_type_t<std::make_unsigned_t<T>, unsigned>;

// Other numbers are computed as they are.

template <class T>
constexpr auto wrapping_sum(T x, T y) {
  if constexpr (is_whole<T>)
    return static_cast<T>(static_cast<residue<T>>(x) + static_cast<residue<T>>(y));
  else
    return x + y;
}
template <class T>
constexpr auto wrapping_difference(T x, T y) {
  if constexpr (is_whole<T>)
    return static_cast<T>(static_cast<residue<T>>(x) - static_cast<residue<T>>(y));
  else
    return x - y;
}
template <class T>
constexpr auto wrapping_product(T x, T y) {
  if constexpr (is_whole<T>)
    return static_cast<T>(static_cast<residue<T>>(x) * static_cast<residue<T>>(y));
  else
    return x * y;
}
/// Rounded towards zero; 0 where y is 0.
template <class T>
constexpr T wrapping_quotient(T x, T y) {
  if (y == 0) return 0;
  // The least integer has no negative: its quotient by -1 is itself.
  if constexpr (std::is_signed_v<T>)
    if (y == -1) return wrapping_difference(T(0), x);
  return static_cast<T>(x / y);
}
/// x^y by repeated squares; below 1 it is rounded towards zero, and 0^y is then 0.
template <class T>
constexpr T wrapping_power(T x, T y) {
  if constexpr (std::is_signed_v<T>) {
    if (y < 0 && x != 1 && x != -1) return 0;
  }
  T power = 1;
  for (auto rest = static_cast<residue<T>>(y); rest; rest >>= 1) {
    if (rest & 1) power = wrapping_product(power, x);
    x = wrapping_product(x, x);
  }
  return power;
}

}  // namespace detail

}  // namespace cella
