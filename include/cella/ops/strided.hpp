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
std::int64_t read_position(const tensor_ref& t, std::int64_t i);
/// y[to] = x[from] and y[to] += x[from], of tensors of one type.
void copy_element(const tensor_ref& x, std::int64_t from, const tensor_ref& y, std::int64_t to);
void add_element(const tensor_ref& x, std::int64_t from, const tensor_ref& y, std::int64_t to);
/// Sets all elements to one value, which is a double: an integer takes the nearest that there is.
void fill(const tensor_ref& t, double value);

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

}  // namespace detail

/// to[i] = from[origin + sum_d step[d] * i[d]] for each element of `to`.
void copy_strided(const tensor_ref& from, std::int64_t origin, const stride_list& step,
                  const tensor_ref& to);
/// to[origin + sum_d step[d] * i[d]] = from[i] for each element of `from`.
void scatter_strided(const tensor_ref& from, const tensor_ref& to, std::int64_t origin,
                     const stride_list& step);

}  // namespace cella

#if CELLA_HAS_BODIES
#include <cella/ops/strided_body.hpp>
#endif
