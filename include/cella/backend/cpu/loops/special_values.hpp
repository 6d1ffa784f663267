// Special functions of the elements of plain tensors.
#pragma once

#include <cella/backend/cpu/simd/special_functions.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cella/ops/names.hpp>
#include <type_traits>

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

/// That of an operation, with the options of this node. (Nothing here asks for the structs of
/// operations that a program does not have.)
template <class Op, class T>
constexpr special_values<T> special_values_of(const node& x);

namespace detail {

/// F on whole vectors; the last is filled up. With `First` it is F(x, First(x)): what waits for its
/// own results in two steps is computed for some vectors at a time, one step after the other.
template <class T, auto F, auto First = nullptr>
void special_vectors(const attributes&, const T* a, const T*, std::int64_t count, T* y) {
  constexpr int L = lanes<T>, together = 16;
  const auto some = [](const T* from, T* to, int vectors) {
    if constexpr (!std::is_null_pointer_v<decltype(First)>) {
      vec<T> between[together];
      for (int k = 0; k < vectors; ++k) between[k] = First(load_unaligned(from + k * L));
      for (int k = 0; k < vectors; ++k)
        store_unaligned(to + k * L, F(load_unaligned(from + k * L), between[k]));
    } else {
      for (int k = 0; k < vectors; ++k)
        store_unaligned(to + k * L, F(load_unaligned(from + k * L)));
    }
  };
  std::int64_t i = 0;
  for (; i + together * L <= count; i += together * L) some(a + i, y + i, together);
  if (i == count) return;
  alignas(64) T rest[together * L];
  const int vectors = int((count - i + L - 1) / L);
  std::fill_n(rest, vectors * L, T(1));
  std::copy_n(a + i, count - i, rest);
  some(rest, rest, vectors);
  std::copy_n(rest, count - i, y + i);
}
/// A function of numbers: there is no form for vectors.
template <auto F, class T>
void special_numbers(const attributes& o, const T* a, const T* b, std::int64_t count, T* y) {
  for (std::int64_t i = 0; i < count; ++i)
    y[i] = static_cast<T>(F(o, double{a[i]}, b ? double{b[i]} : 0));
}

template <class Op>
double special_number(const attributes& o, double a, double b) {
  if constexpr (std::is_same_v<Op, gamma_slope_op>)
    return Op::of(a, b);
  else
    return Op::of(o, a);
}

}  // namespace detail

template <class Op, class T>
constexpr special_values<T> special_values_of([[maybe_unused]] const node& x) {
  using namespace detail;
  constexpr bool single = std::is_same_v<T, float>;
  constexpr special_values<T> numbers = &special_numbers<&special_number<Op>, T>;
  if constexpr (std::is_same_v<Op, lgamma_op> && single) {
    return &special_vectors<T, &cpu::log_gamma<T>>;
  } else if constexpr (std::is_same_v<Op, erfinv_op> && single) {
    return &special_vectors<T, &cpu::detail::inverse_error_at<T>,
                            &cpu::detail::inverse_error_argument<T>>;
  } else if constexpr (std::is_same_v<Op, erfinv_op>) {
    return &special_vectors<T, &cpu::inverse_error_function<T>>;
  } else if constexpr (std::is_same_v<Op, polygamma_op> && single) {
    const bool first = x.attributes.as<typename Op::options>().order == 0;
    return first ? &special_vectors<T, &cpu::digamma<T>> : numbers;
  } else if constexpr (std::is_same_v<Op, bessel_ie_op>) {
    const int order = x.attributes.as<typename Op::options>().order;
    return order == 0   ? &special_vectors<T, &cpu::bessel_ie<0, T>>
           : order == 1 ? &special_vectors<T, &cpu::bessel_ie<1, T>>
                        : numbers;
  } else {
    return numbers;
  }
}

}  // namespace cella::cpu
