// Integers of the language in 128 bits, what those of a type are compared with; and numbers at the
// ends of each type's range.
#pragma once

#include <limits>

#include "element_types.hpp"

namespace cella::test {

__extension__ using wide = __int128;
__extension__ using modular = unsigned __int128;

/// Modulo 2^n.
template <class T>
T sum_of(T x, T y) {
  return static_cast<T>(static_cast<modular>(x) + static_cast<modular>(y));
}
template <class T>
T product_of(T x, T y) {
  return static_cast<T>(static_cast<modular>(x) * static_cast<modular>(y));
}
inline wide floor_of_quotient(wide x, wide y) {
  return y == 0 ? 0 : x / y - (x % y != 0 && (x < 0) != (y < 0));
}

/// The ends of a type's range, and numbers about zero: each with each.
template <class T>
constexpr auto ends = std::array{std::numeric_limits<T>::min(),
                                 static_cast<T>(std::numeric_limits<T>::min() + 1),
                                 static_cast<T>(-1),
                                 T(0),
                                 T(1),
                                 T(7),
                                 static_cast<T>(std::numeric_limits<T>::max() / 2),
                                 static_cast<T>(std::numeric_limits<T>::max() / 2 + 1),
                                 std::numeric_limits<T>::max()};
constexpr int pairs = 81;

template <class T>
std::array<std::vector<T>, 2> all_pairs() {
  std::array<std::vector<T>, 2> p;
  for (T x : ends<T>) {
    for (T y : ends<T>) {
      p[0].push_back(x);
      p[1].push_back(y);
    }
  }
  return p;
}

}  // namespace cella::test
