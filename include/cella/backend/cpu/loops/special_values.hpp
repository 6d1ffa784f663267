// Special functions of the elements of plain tensors.
#pragma once

#include <cella/backend/cpu/simd/special_functions.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cella/ops/random_distributions.hpp>

namespace cella::cpu {

/// y[i] = f(a[i], b[i]) for so many elements; b is null for functions of one number.
template <class T>
using special_values = void (*)(const attributes& options, const T* a, const T* b,
                                std::int64_t count, T* y);

/// Units: so many elements.
inline constexpr std::int64_t special_unit = 1024;
constexpr int special_units(std::int64_t count) {
  return int((count + special_unit - 1) / special_unit);
}

/// That of an operation, with these options.
template <class T>
constexpr special_values<T> special_values_of(const node& x);

namespace detail {

/// F on whole vectors; the last is filled up.
template <auto F, class T>
void special_vectors(const attributes&, const T* a, const T*, std::int64_t count, T* y) {
  constexpr int L = lanes<T>;
  std::int64_t i = 0;
  for (; i + L <= count; i += L) store_unaligned(y + i, F(load_unaligned(a + i)));
  if (i == count) return;
  alignas(64) T rest[L];
  std::fill_n(rest, L, T(1));
  std::copy_n(a + i, count - i, rest);
  store(rest, F(load(rest)));
  std::copy_n(rest, count - i, y + i);
}
/// A function of numbers: there is no form for vectors.
template <auto F, class T>
void special_numbers(const attributes& o, const T* a, const T* b, std::int64_t count, T* y) {
  for (std::int64_t i = 0; i < count; ++i)
    y[i] = static_cast<T>(F(o, double{a[i]}, b ? double{b[i]} : 0));
}

template <class T>
vec<T> log_gammas(vec<T> x) {
  return cpu::log_gamma(x);
}
template <class T>
vec<T> digammas(vec<T> x) {
  return cpu::digamma(x);
}
template <class T>
vec<T> inverse_errors(vec<T> x) {
  return cpu::inverse_error_function(x);
}
template <int Order, class T>
vec<T> bessels(vec<T> x) {
  return cpu::bessel_ie<Order>(x);
}
inline double polygamma_number(const attributes& o, double x, double) {
  return polygamma_op::of(o, x);
}
inline double bessel_number(const attributes& o, double x, double) {
  return bessel_ie_op::of(o, x);
}
inline double gamma_slope_number(const attributes&, double alpha, double x) {
  return cella::detail::gamma_slope_of(alpha, x);
}

}  // namespace detail

template <class T>
constexpr special_values<T> special_values_of(const node& x) {
  if (is<lgamma_op>(x)) return &detail::special_vectors<&detail::log_gammas<T>, T>;
  if (is<erfinv_op>(x)) return &detail::special_vectors<&detail::inverse_errors<T>, T>;
  if (is<gamma_slope_op>(x)) return &detail::special_numbers<&detail::gamma_slope_number, T>;
  const int order = x.attributes.as<polygamma_op::options>().order;
  if (is<polygamma_op>(x))
    return order == 0 ? &detail::special_vectors<&detail::digammas<T>, T>
                      : &detail::special_numbers<&detail::polygamma_number, T>;
  return order == 0   ? &detail::special_vectors<&detail::bessels<0, T>, T>
         : order == 1 ? &detail::special_vectors<&detail::bessels<1, T>, T>
                      : &detail::special_numbers<&detail::bessel_number, T>;
}

}  // namespace cella::cpu
