// What strided.hpp declares.
#pragma once

#include <algorithm>
#include <array>
#include <cella/ops/move_row.hpp>
#include <cella/ops/strided.hpp>
#include <cstring>
#include <type_traits>
#include <utility>

namespace cella {

CELLA_HOT_BODY std::int64_t read_position(const tensor_ref& t, std::int64_t i) {
  return with_wide_number(t.type.element, [&]<class N>() -> std::int64_t {
    const N v = read_number<N>(t, i);
    if constexpr (std::is_same_v<N, std::uint64_t>)
      return v >> 63 ? -1 : static_cast<std::int64_t>(v);
    else
      return static_cast<std::int64_t>(v);
  });
}

CELLA_HOT_BODY void copy_element(const tensor_ref& x, std::int64_t from, const tensor_ref& y,
                                 std::int64_t to) {
  const auto bytes = std::int64_t(size_of(x.type.element));
  std::memcpy(y.data + to * bytes, x.data + from * bytes, std::size_t(bytes));
}

CELLA_HOT_BODY void add_element(const tensor_ref& x, std::int64_t from, const tensor_ref& y,
                                std::int64_t to) {
  with_any_number(x.type.element, [&]<class N>() {
    write_number(y, to, detail::wrapping_sum(read_number<N>(y, to), read_number<N>(x, from)));
  });
}

CELLA_HOT_BODY void fill(const tensor_ref& t, double value) {
  const auto bytes = std::size_t(t.type.bytes());
  if (!bytes) return;
  with_element(t.type.element,
               [&]<class T>() { *reinterpret_cast<T*>(t.data) = from_double<T>(value); });
  for (std::size_t done = size_of(t.type.element); done < bytes; done *= 2)
    std::memcpy(t.data + done, t.data, std::min(done, bytes - done));
}

namespace detail {

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

CELLA_HOT_BODY void copy_strided(const tensor_ref& from, std::int64_t origin,
                                 const stride_list& step, const tensor_ref& to) {
  detail::move_strided(to.type.shape, from, origin, step, to, 0, row_major_strides(to.type.shape));
}

CELLA_HOT_BODY void scatter_strided(const tensor_ref& from, const tensor_ref& to,
                                    std::int64_t origin, const stride_list& step) {
  detail::move_strided(from.type.shape, from, 0, row_major_strides(from.type.shape), to, origin,
                       step);
}

}  // namespace cella
