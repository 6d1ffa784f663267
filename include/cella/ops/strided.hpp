// Plain loops over tensors in memory, for the reference computation of operations.
#pragma once

#include <algorithm>
#include <array>
#include <cella/graph/op_info.hpp>
#include <cella/ops/numbers.hpp>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
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

/// Element `i` of a tensor of any type as an N (of a complex number in others its real part), and
/// back.
template <class N>
N read_number(const tensor_ref& t, std::int64_t i) {
  return with_element(t.type.element, [&]<class T>() {
    return to_number<N>(reinterpret_cast<const T*>(t.data)[i]);
  });
}
template <class N>
void write_number(const tensor_ref& t, std::int64_t i, N value) {
  with_element(t.type.element,
               [&]<class T>() { reinterpret_cast<T*>(t.data)[i] = from_number<T>(value); });
}
/// The same for `count` elements from `first`. Not inlined: each is a loop for every element type.
template <class N>
[[gnu::noinline]] void read_numbers(const tensor_ref& t, std::int64_t first, std::int64_t count,
                                    N* to) {
  with_element(t.type.element, [&]<class T>() {
    const T* const x = reinterpret_cast<const T*>(t.data) + first;
    for (std::int64_t i = 0; i < count; ++i) to[i] = to_number<N>(x[i]);
  });
}
template <class N>
[[gnu::noinline]] void write_numbers(const tensor_ref& t, std::int64_t first, std::int64_t count,
                                     const N* from) {
  with_element(t.type.element, [&]<class T>() {
    T* const y = reinterpret_cast<T*>(t.data) + first;
    for (std::int64_t i = 0; i < count; ++i) y[i] = from_number<T>(from[i]);
  });
}
/// Element `i` of a tensor of integers as a position; what is beyond all positions is -1.
inline std::int64_t read_position(const tensor_ref& t, std::int64_t i) {
  return with_wide_number(t.type.element, [&]<class N>() -> std::int64_t {
    const N v = read_number<N>(t, i);
    if constexpr (std::is_same_v<N, std::uint64_t>)
      return v >> 63 ? -1 : static_cast<std::int64_t>(v);
    else
      return static_cast<std::int64_t>(v);
  });
}
/// y[to] = x[from] and y[to] += x[from], of tensors of one type.
inline void copy_element(const tensor_ref& x, std::int64_t from, const tensor_ref& y,
                         std::int64_t to) {
  const auto bytes = std::int64_t(size_of(x.type.element));
  std::memcpy(y.data + to * bytes, x.data + from * bytes, std::size_t(bytes));
}
inline void add_element(const tensor_ref& x, std::int64_t from, const tensor_ref& y,
                        std::int64_t to) {
  with_any_number(x.type.element, [&]<class N>() {
    write_number(y, to, detail::wrapping_sum(read_number<N>(y, to), read_number<N>(x, from)));
  });
}
/// Sets all elements to one value, which is a double: an integer takes the nearest that there is.
inline void fill(const tensor_ref& t, double value) {
  const auto bytes = std::size_t(t.type.bytes());
  if (!bytes) return;
  with_element(t.type.element,
               [&]<class T>() { *reinterpret_cast<T*>(t.data) = from_double<T>(value); });
  for (std::size_t done = size_of(t.type.element); done < bytes; done *= 2)
    std::memcpy(t.data + done, t.data, std::min(done, bytes - done));
}

/// Element `i` of a tensor of any type as a double (64-bit integers beyond 2^53 lose digits).
inline double read_element(const tensor_ref& t, std::int64_t i) {
  return read_number<double>(t, i);
}
inline void write_element(const tensor_ref& t, std::int64_t i, double value) {
  write_number(t, i, value);
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
        case 16:
          detail::copy_apart<std::complex<double>>(x, inner, y, row);
          break;
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
