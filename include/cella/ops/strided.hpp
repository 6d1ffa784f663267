// Plain loops over tensors in memory, for the reference computation of operations.
#pragma once

#include <algorithm>
#include <array>
#include <cella/graph/once.hpp>
#include <cella/graph/op_info.hpp>
#include <cella/ops/numbers.hpp>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

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

/// `count` elements from `first` of a tensor of any type as Ns (of complex numbers in others their
/// real parts), and back. Each is a loop for every element type, of which a program runs few: they
/// are compiled to be small.
template <class N>
[[gnu::cold, gnu::noinline]] void read_numbers(const tensor_ref& t, std::int64_t first,
                                               std::int64_t count, N* to) {
  with_element(
      t.type.element, [&]<class T>() __attribute__((cold)) {
        const T* const x = reinterpret_cast<const T*>(t.data) + first;
        for (std::int64_t i = 0; i < count; ++i) to[i] = to_number<N>(x[i]);
      });
}
template <class N>
[[gnu::cold, gnu::noinline]] void write_numbers(const tensor_ref& t, std::int64_t first,
                                                std::int64_t count, const N* from) {
  with_element(
      t.type.element, [&]<class T>() __attribute__((cold)) {
        T* const y = reinterpret_cast<T*>(t.data) + first;
        for (std::int64_t i = 0; i < count; ++i) y[i] = from_number<T>(from[i]);
      });
}
/// The same of element `i` alone.
template <class N>
N read_number(const tensor_ref& t, std::int64_t i) {
  N x;
  read_numbers(t, i, 1, &x);
  return x;
}
template <class N>
void write_number(const tensor_ref& t, std::int64_t i, N value) {
  write_numbers(t, i, 1, &value);
}
// Where kernels.cpp has the loops for every element type, they are not compiled again.
#define CELLA_NUMBER_ACCESS(prefix, N)                                                     \
  prefix template void read_numbers<N>(const tensor_ref&, std::int64_t, std::int64_t, N*); \
  prefix template void write_numbers<N>(const tensor_ref&, std::int64_t, std::int64_t, const N*);
#define CELLA_NUMBERS_ACCESS(prefix)         \
  CELLA_NUMBER_ACCESS(prefix, double)        \
  CELLA_NUMBER_ACCESS(prefix, std::int64_t)  \
  CELLA_NUMBER_ACCESS(prefix, std::uint64_t) \
  CELLA_NUMBER_ACCESS(prefix, std::complex<double>)
#if CELLA_HAS_BODIES == 0
CELLA_NUMBERS_ACCESS(extern)
#elif defined(CELLA_COMPILES_KERNELS)
CELLA_NUMBERS_ACCESS()
#endif
#undef CELLA_NUMBERS_ACCESS
#undef CELLA_NUMBER_ACCESS

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

/// The axes of a movement, outermost first: how long each is, and how far it moves in the source
/// and in the target. Axes that move together are one.
struct movement {
  int rank{};
  stride_list count{}, from{}, to{};
};
constexpr movement movement_of(const shape& s, const stride_list& from, const stride_list& to) {
  movement m;
  for (int d = 0; d < s.rank; ++d) {
    const auto axis = std::size_t(d);
    if (s[d] == 1) continue;
    const auto last = std::size_t(m.rank - 1);
    if (m.rank > 0 && m.from[last] == from[axis] * s[d] && m.to[last] == to[axis] * s[d] &&
        m.count[last] * s[d] <= std::numeric_limits<std::int32_t>::max()) {
      m.count[last] *= s[d];
      m.from[last] = from[axis];
      m.to[last] = to[axis];
    } else {
      m.count[std::size_t(m.rank)] = s[d];
      m.from[std::size_t(m.rank)] = from[axis];
      m.to[std::size_t(m.rank++)] = to[axis];
    }
  }
  if (m.rank == 0) m.count[std::size_t(m.rank++)] = 1;
  return m;
}
/// Whether rows of so many elements are so short that it is better to walk across them.
constexpr bool is_walked_across(std::int64_t elements, std::int64_t rows) {
  constexpr std::int64_t short_row = 16;
  return elements < short_row && elements < rows;
}

/// Copies a row of elements of `Bytes` bytes, `from` and `to` elements apart.
template <std::size_t Bytes>
void move_row(const std::byte* x, std::int64_t from, std::byte* y, std::int64_t to,
              std::int64_t count) {
  constexpr auto unit = std::int64_t{Bytes};
  if (from == 1 && to == 1) {
    std::memcpy(y, x, Bytes * std::size_t(count));
  } else if (from == 0 && to == 1) {
    std::memcpy(y, x, Bytes);
    for (std::int64_t done = 1; done < count; done *= 2)
      std::memcpy(y + done * unit, y, Bytes * std::size_t(std::min(done, count - done)));
  } else {
    // What is written or read side by side is so by a constant, for vectors.
    const auto move = [&](auto read, auto write) __attribute__((always_inline)) {
      for (std::int64_t k = 0; k < count; ++k)
        std::memcpy(y + k * write * unit, x + k * read * unit, Bytes);
    };
    using one = std::integral_constant<std::int64_t, 1>;
    using two = std::integral_constant<std::int64_t, 2>;
    if (to == 1 && from == -1)
      move(std::integral_constant<std::int64_t, -1>{}, one{});
    else if (to == 1 && from == 2)
      move(two{}, one{});
    else if (to == 2 && from == 1)
      move(one{}, two{});
    else if (to == 1)
      move(from, one{});
    else if (from == 1)
      move(one{}, to);
    else
      move(from, to);
  }
}
/// y[k times + j] = x[k] for j < times: `times` is a constant where it is common.
template <std::size_t Bytes>
void repeat_row(const std::byte* x, std::int64_t count, std::int64_t times, std::byte* y) {
  const auto repeat = [&](auto n) __attribute__((always_inline)) {
    for (std::int64_t k = 0; k < count; ++k) {
      std::array<std::byte, Bytes> element;
      std::memcpy(element.data(), x + k * std::int64_t{Bytes}, Bytes);
      for (std::int64_t j = 0; j < n; ++j)
        std::memcpy(y + (k * n + j) * std::int64_t{Bytes}, element.data(), Bytes);
    }
  };
  if (times == 2)
    repeat(std::integral_constant<std::int64_t, 2>{});
  else
    repeat(times);
}
template <std::size_t Bytes>
void move_elements(const movement& m, const std::byte* x, std::byte* y) {
  const auto last = std::size_t(m.rank - 1);
  if (m.rank == 2 && m.from[0] == 0 && m.to[0] == 1 && m.from[1] == 1 && m.to[1] == m.count[0])
    return repeat_row<Bytes>(x, m.count[1], m.count[0], y);
  shape outer;
  for (std::size_t d = 0; d < last; ++d) outer.push_back(std::int32_t(m.count[d]));
  if (m.count[last] == 0) return;
  for_each_index(outer, [&](std::int64_t, const multi_index& i) {
    std::int64_t p = 0, q = 0;
    for (std::size_t d = 0; d < last; ++d) {
      p += m.from[d] * i[d];
      q += m.to[d] * i[d];
    }
    move_row<Bytes>(x + p * std::int64_t{Bytes}, m.from[last], y + q * std::int64_t{Bytes},
                    m.to[last], m.count[last]);
  });
}
/// to[q + sum of i_d to_step_d] = from[p + sum of i_d from_step_d] for all i of shape s. Elements
/// are moved, not interpreted.
inline void move_strided(const shape& s, const tensor_ref& from, std::int64_t p,
                         const stride_list& from_step, const tensor_ref& to, std::int64_t q,
                         const stride_list& to_step) {
  movement m = movement_of(s, from_step, to_step);
  const auto last = std::size_t(m.rank - 1);
  if (m.rank > 1 && is_walked_across(m.count[last], m.count[last - 1])) {
    for (stride_list* l : {&m.count, &m.from, &m.to}) std::swap((*l)[last], (*l)[last - 1]);
  }
  const auto unit = std::int64_t(size_of(to.type.element));
  const std::byte* const x = from.data + p * unit;
  std::byte* const y = to.data + q * unit;
  switch (unit) {
    case 16:
      return move_elements<16>(m, x, y);
    case 8:
      return move_elements<8>(m, x, y);
    case 4:
      return move_elements<4>(m, x, y);
    case 2:
      return move_elements<2>(m, x, y);
    default:
      return move_elements<1>(m, x, y);
  }
}

}  // namespace detail

/// to[i] = from[origin + sum_d step[d] * i[d]] for each element of `to`.
inline void copy_strided(const tensor_ref& from, std::int64_t origin, const stride_list& step,
                         const tensor_ref& to) {
  detail::move_strided(to.type.shape, from, origin, step, to, 0, row_major_strides(to.type.shape));
}
/// to[origin + sum_d step[d] * i[d]] = from[i] for each element of `from`.
inline void scatter_strided(const tensor_ref& from, const tensor_ref& to, std::int64_t origin,
                            const stride_list& step) {
  detail::move_strided(from.type.shape, from, 0, row_major_strides(from.type.shape), to, origin,
                       step);
}

}  // namespace cella
