// One row of elements is moved: what kernels and the computation of movements share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace cella::detail {

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

}  // namespace cella::detail
