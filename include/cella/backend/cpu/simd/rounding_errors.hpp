// What rounding loses, kept beside the result: functions that must be right in the last digit add
// it again. After Dekker, "A floating-point technique for extending the available precision",
// Numerische Mathematik 18 (1971).
#pragma once

#include <cella/backend/cpu/simd/simd.hpp>
#include <cstdint>

namespace cella::cpu::detail {

/// Whether `multiply_add` rounds once.
#if defined(__FMA__) || defined(__AVX512F__) || defined(__aarch64__)
inline constexpr bool has_fused_multiply_add = true;
#else
inline constexpr bool has_fused_multiply_add = false;
#endif

/// x, rounded: no compiler contracts the product that made it with a sum that uses it.
template <class T>
[[gnu::always_inline]] inline vec<T> rounded(vec<T> x) {
  typename vec<T>::register_type bits = x;
#if defined(__SSE2__)
  asm("" : "+x"(bits));
#elif defined(__aarch64__)
  asm("" : "+w"(bits));
#endif
  return bits;
}

/// -x, which g++ makes a part of the operation that takes it (the SIMD library's is 0 - x).
template <class T>
[[gnu::always_inline]] inline vec<T> negated(vec<T> x) {
  const typename vec<T>::register_type bits = x;
  return vec<T>(-bits);
}

/// a b - product, where `product` is a b, rounded.
template <class T>
[[gnu::always_inline]] inline vec<T> product_error(vec<T> a, vec<T> b, vec<T> product) {
  if constexpr (has_fused_multiply_add) {
    return multiply_add(a, b, negated<T>(product));
  } else {
    // Halves of the digits, whose products are exact.
    using integer = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    const xsimd::batch<integer> mask(sizeof(T) == 4 ? integer(0xfffff000u)
                                                    : integer(0xfffffffff8000000u));
    const auto upper = [&](vec<T> x) {
      return xsimd::bitwise_cast<vec<T> >(xsimd::bitwise_cast<vec<integer> >(x) & mask);
    };
    const vec<T> a_high = upper(a), b_high = upper(b), a_low = a - a_high, b_low = b - b_high;
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
  }
}

/// f of single-precision lanes, computed in double precision.
template <class Function>
[[gnu::always_inline]] inline vec<float> in_doubles(vec<float> x, Function f) {
  const wide_lanes wide = widen(x);
  return narrow({f(wide.low), f(wide.high)});
}

}  // namespace cella::cpu::detail
