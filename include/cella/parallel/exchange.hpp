// What a rank makes of the tensors of a group: sums and pieces of them, in the order of the ranks.
#pragma once

#include <algorithm>
#include <cella/ops/strided.hpp>
#include <cella/parallel/collective.hpp>
#include <cstring>
#include <span>

namespace cella::parallel::detail {

/// Elements [first, first + count) of the sum of tensors of one type, in the order of the ranks:
/// all ranks make the same numbers, bit for bit.
inline void sum_elements(std::span<const std::byte* const> in, const tensor_type& t,
                         std::int64_t first, std::int64_t count, std::byte* out) {
  with_element(t.element, [&]<class T>() {
    T* const y = reinterpret_cast<T*>(out);
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
      const auto at = [&](std::size_t r) { return reinterpret_cast<const T*>(in[r]) + first; };
      const T *const x = at(0), *const second = at(in.size() > 1);
      for (std::int64_t i = 0; i < count; ++i) y[i] = in.size() > 1 ? x[i] + second[i] : x[i];
      for (std::size_t r = 2; r < in.size(); ++r) {
        const T* const z = at(r);
        for (std::int64_t i = 0; i < count; ++i) y[i] += z[i];
      }
    } else {
      with_any_number(t.element, [&]<class N>() {
        for (std::int64_t i = 0; i < count; ++i) {
          N sum{};
          for (const std::byte* x : in)
            sum = N(sum + to_number<N>(reinterpret_cast<const T*>(x)[first + i]));
          y[i] = from_number<T>(sum);
        }
      });
    }
  });
}

/// The share of the elements of a sum that a rank adds up: from this one on, to that of the next.
constexpr std::int64_t first_of_share(const tensor_type& t, int rank, int ranks) {
  return t.size() * rank / ranks;
}
/// Adds up this rank's share of a sum, and writes it to the same place of several tensors.
inline void sum_share(std::span<const std::byte* const> in, const tensor_type& t,
                      const communicator::group& own, std::span<std::byte* const> out) {
  const auto size = std::int64_t(size_of(t.element));
  const std::int64_t end = first_of_share(t, own.coordinate + 1, own.size);
  // So much is in the cache when it is copied.
  constexpr std::int64_t block = 2048;
  for (std::int64_t i = first_of_share(t, own.coordinate, own.size); i < end; i += block) {
    const std::int64_t count = std::min(block, end - i);
    sum_elements(in, t, i, count, out[0] + i * size);
    for (std::byte* y : out.subspan(1))
      std::memcpy(y + i * size, out[0] + i * size, std::size_t(count * size));
  }
}

/// The type of the tensor of which this is part `i` of `parts` along a dimension of `extent`.
constexpr tensor_type type_of_part(tensor_type t, int dimension, int extent, int parts, int i) {
  t.shape[dimension] = size_of_part(extent, parts, i);
  return t;
}

/// The part of the sum that lies at `index` of as many along a dimension as there are tensors.
inline void sum_part(std::span<const std::byte* const> in, const tensor_type& whole, int dimension,
                     int index, const tensor_ref& out) {
  const std::int64_t behind = whole.shape.size(dimension + 1, whole.rank());
  const std::int64_t run = out.type[dimension] * behind;
  const std::int64_t all = whole[dimension] * behind;
  const auto size = std::int64_t(size_of(whole.element));
  const std::int64_t before = whole.shape.size(0, dimension);
  const std::int64_t first = first_of_part(whole[dimension], int(in.size()), index) * behind;
  for (std::int64_t i = 0; i < before; ++i)
    sum_elements(in, whole, i * all + first, run, out.data + i * run * size);
}

/// All ranks' parts of a tensor, which are as `own` but for their extent, one behind the other.
inline void join_parts(std::span<const std::byte* const> in, const tensor_type& own, int dimension,
                       const tensor_ref& out) {
  const int extent = out.type[dimension], ranks = int(in.size());
  for (int r = 0; r < ranks; ++r) {
    const tensor_type t = type_of_part(own, dimension, extent, ranks, r);
    const auto first = cella::detail::place_along(dimension, first_of_part(extent, ranks, r));
    cella::detail::copy_box({const_cast<std::byte*>(in[std::size_t(r)]), t}, {}, out, first,
                            t.shape);
  }
}

/// Copies from x, the operand of rank `r` of `count`, its part at `index` along `cut` to where it
/// stands in out along `joined`.
inline void exchange_part(const tensor_ref& x, int r, int count, int cut, int index,
                          const tensor_ref& out, int joined) {
  shape piece = x.type.shape;
  piece[cut] = out.type[cut];
  const int from = first_of_part(x.type[cut], count, index);
  const int to = first_of_part(out.type[joined], count, r);
  cella::detail::copy_box(x, cella::detail::place_along(cut, from), out,
                          cella::detail::place_along(joined, to), piece);
}
/// The same from the operands of all ranks, which are as `own` but for their extent.
inline void exchange_parts(std::span<const std::byte* const> in, const tensor_type& own, int cut,
                           int index, const tensor_ref& out, int joined) {
  const int ranks = int(in.size());
  for (int r = 0; r < ranks; ++r) {
    const tensor_type t = type_of_part(own, joined, out.type[joined], ranks, r);
    exchange_part({const_cast<std::byte*>(in[std::size_t(r)]), t}, r, ranks, cut, index, out,
                  joined);
  }
}

}  // namespace cella::parallel::detail
