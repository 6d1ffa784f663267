// Digits of the integers of plain tensors.
#pragma once

#include <cella/backend/host/work_range.hpp>
#include <cella/ops/op.hpp>
#include <cstddef>

namespace cella::cpu {

/// y[i] = f(a[i], b[i]) for elements first to last; b is null for functions of one integer.
using bitwise_values = void (*)(const std::byte* a, const std::byte* b, std::int64_t first,
                                std::int64_t last, std::byte* y);

/// Units: so many elements.
inline constexpr std::int64_t bitwise_unit = 16384;
constexpr int bitwise_units(std::int64_t count) {
  return int((count + bitwise_unit - 1) / bitwise_unit);
}

namespace detail {

/// Integers of other than 32 bits are computed in 64, of which the low ones stay; truth values have
/// one.
template <class Op, class T>
void bitwise_loop(const std::byte* a, const std::byte* b, std::int64_t first, std::int64_t last,
                  std::byte* y) {
  using longest = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  using wide = std::conditional_t<sizeof(T) == 4, T, longest>;
  const auto* const x = reinterpret_cast<const T*>(a);
  const auto* const other = reinterpret_cast<const T*>(b);
  auto* const to = reinterpret_cast<T*>(y);
  if (other) {
    for (std::int64_t i = first; i < last; ++i)
      to[i] = static_cast<T>(Op::on(wide{x[i]}, wide{other[i]}));
  } else {
    for (std::int64_t i = first; i < last; ++i) to[i] = static_cast<T>(Op::on(wide{x[i]}, wide{}));
  }
}
/// Truth values, as bytes.
template <class Op>
void bitwise_truths(const std::byte* a, const std::byte* b, std::int64_t first, std::int64_t last,
                    std::byte* y) {
  for (std::int64_t i = first; i < last; ++i) {
    const auto other = b ? std::to_integer<std::int64_t>(b[i]) : 0;
    y[i] = std::byte(Op::on(std::to_integer<std::int64_t>(a[i]), other) & 1);
  }
}
}  // namespace detail

/// That of an operation on integers of the node's type.
template <class Op>
constexpr bitwise_values bitwise_values_of(const node& x) {
  return with_element(x.type.element, []<class T>() -> bitwise_values {
    if constexpr (cella::detail::is_whole<T>)
      return &detail::bitwise_loop<Op, T>;
    else
      return &detail::bitwise_truths<Op>;
  });
}

}  // namespace cella::cpu
