// Plain loops over tensors in memory, for the reference computation of operations.
#pragma once

#include <array>
#include <cella/graph/op_info.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace cella {

using stride_list = std::array<std::int64_t, max_rank>;
using multi_index = std::array<std::int32_t, max_rank>;

/// Calls f(k, index) for each element of a row-major tensor; k counts from 0.
template <class F>
constexpr void for_each_index(const shape& s, F f) {
  const std::int64_t n = s.size();
  multi_index i{};
  for (std::int64_t k = 0; k < n; ++k) {
    f(k, i);
    for (int d = s.rank; d-- > 0;) {
      if (++i[std::size_t(d)] < s[d]) break;
      i[std::size_t(d)] = 0;
    }
  }
}

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
  } else if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(value);
  else
    return T(static_cast<float>(value));
}

/// Element `i` of a tensor of any type as a double (64-bit integers beyond 2^53 lose digits).
inline double read_element(const tensor_ref& t, std::int64_t i) {
  return with_element(t.type.element, [&]<class T>() {
    return static_cast<double>(reinterpret_cast<const T*>(t.data)[i]);
  });
}
inline void write_element(const tensor_ref& t, std::int64_t i, double value) {
  with_element(t.type.element,
               [&]<class T>() { reinterpret_cast<T*>(t.data)[i] = from_double<T>(value); });
}

namespace detail {

/// Copies `count` elements of T that lie `step` elements apart.
template <class T>
void copy_apart(const std::byte* from, std::int64_t step, std::byte* to, std::int64_t count) {
  for (std::int64_t k = 0; k < count; ++k)
    std::memcpy(to + k * std::int64_t{sizeof(T)}, from + k * step * std::int64_t{sizeof(T)},
                sizeof(T));
}

}  // namespace detail

/// to[i] = from[origin + sum_d step[d] * i[d]] for each element of `to`. Elements are moved, not
/// interpreted.
inline void copy_strided(const tensor_ref& from, std::int64_t origin, const stride_list& step,
                         const tensor_ref& to) {
  const std::size_t unit = size_of(to.type.element);
  const int last = to.type.rank() - 1;
  shape outer = to.type.shape;
  const std::int64_t row = last >= 0 ? outer[last] : 1;
  const std::int64_t inner = last >= 0 ? step[std::size_t(last)] : 0;
  if (last >= 0) outer.erase(last);
  std::byte* y = to.data;
  for_each_index(outer, [&](std::int64_t, const multi_index& i) {
    std::int64_t p = origin;
    for (int d = 0; d < outer.rank; ++d) p += step[std::size_t(d)] * i[std::size_t(d)];
    const std::byte* x = from.data + p * std::int64_t(unit);
    if (inner == 1) {
      std::memcpy(y, x, unit * std::size_t(row));
      y += unit * std::size_t(row);
    } else {
      switch (unit) {
        case 8:
          detail::copy_apart<std::int64_t>(x, inner, y, row);
          break;
        case 4:
          detail::copy_apart<std::int32_t>(x, inner, y, row);
          break;
        case 2:
          detail::copy_apart<std::int16_t>(x, inner, y, row);
          break;
        default:
          detail::copy_apart<std::byte>(x, inner, y, row);
      }
      y += unit * std::size_t(row);
    }
  });
}
/// to[origin + sum_d step[d] * i[d]] = from[i] for each element of `from`.
inline void scatter_strided(const tensor_ref& from, const tensor_ref& to, std::int64_t origin,
                            const stride_list& step) {
  const std::size_t unit = size_of(from.type.element);
  for_each_index(from.type.shape, [&](std::int64_t k, const multi_index& i) {
    std::int64_t p = origin;
    for (int d = 0; d < from.type.rank(); ++d) p += step[std::size_t(d)] * i[std::size_t(d)];
    std::memcpy(to.data + p * std::int64_t(unit), from.data + k * std::int64_t(unit), unit);
  });
}

}  // namespace cella
