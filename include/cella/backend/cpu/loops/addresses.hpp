// Where fused groups read and write: arrays in memory, and random numbers that are drawn.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/registers/straight_line.hpp>
#include <cella/backend/cpu/simd/random_numbers.hpp>
#include <cstdint>
#include <cstring>

namespace cella::cpu {

/// Random numbers at `element` and following, of the stream whose key is operand K at `p`.
template <int K, class T>
[[gnu::always_inline]] inline vec<T> drawn_at(const void* p, std::int64_t element) {
  std::uint64_t key;
  std::memcpy(&key, p, sizeof key);
  return uniform_vector<T, K>(key, element);
}

/// Addresses of the values that a group reads and writes. What is stored in another type than T
/// lies there all the same.
template <class T, int Reads, int Writes>
struct addresses {
  std::array<const T*, std::size_t(Reads)> in{};
  std::array<T*, std::size_t(Writes)> out{};

  /// Lists the arrays that a line reads or writes where its result belongs; returns their number.
  template <class Line>
  int list_in_step(const T** to, int most) const {
    int count = 0;
    for (std::size_t k = 0; k < in.size(); ++k) {
      if (count < most && (Line::reads_in_step >> k & 1u)) to[count++] = in[k];
    }
    for (const T* array : out) {
      // What is updated in its place was read already.
      if (count < most && std::find(to, to + count, array) == to + count) to[count++] = array;
    }
    return count;
  }
};

}  // namespace cella::cpu
