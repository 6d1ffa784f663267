// One matrix of a batch, and the memory that it is decomposed in.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/matrices/subtracted_product.hpp>
#include <cella/graph/attributes.hpp>
#include <cstddef>
#include <cstdint>

namespace cella::cpu {

/// Memory for parts, one after the other; without memory it counts the bytes.
class part_room {
  // Before those that call it: clang does not run what it has not seen yet.
  template <class N>
  constexpr N* take(std::int64_t count) {
    N* const p = at_ ? reinterpret_cast<N*>(at_ + bytes_) : nullptr;
    bytes_ += count * std::int64_t{sizeof(N)};
    return p;
  }

 public:
  constexpr explicit part_room(std::byte* at = nullptr) : at_(at) {}

  /// Rows that lie a power of 2 apart would share few lines of a cache. All are whole vectors.
  constexpr written_part matrix(int rows, int columns) {
    const std::int64_t row = (columns + 7) / 8 * 8 + 8;
    return {numbers(rows * row), row};
  }
  constexpr double* numbers(std::int64_t count) { return take<double>((count + 7) / 8 * 8); }
  constexpr int* whole_numbers(std::int64_t count) { return take<int>((count + 15) / 16 * 16); }
  constexpr std::int64_t bytes() const { return bytes_; }

 private:
  std::byte* at_;
  std::int64_t bytes_{};
};

/// A matrix, and right sides of equations if the operation has any.
struct decomposition_extents {
  int rows{}, n{};
  int columns{};  ///< of the right sides
};

/// Operands and results of one matrix of the batch. Results are of T, apart from lu's order; those
/// that nobody reads are null.
template <class T>
struct decomposition_task {
  decomposition_extents e;
  const T* a;
  const T* b;  ///< null if there are no right sides
  std::array<std::byte*, 3> results;

  template <class U = T>
  U* result(std::size_t k) const {
    return reinterpret_cast<U*>(results[k]);
  }
};
template <class T>
using decomposition = void (*)(const attributes&, const decomposition_task<T>&, part_room);

namespace detail {

/// Rows times a factor, with zeros behind each to the end of its last vector.
template <class T>
void read_rows(const T* from, int rows, int row_length, written_part to, double factor = 1) {
  for (int i = 0; i < rows; ++i, from += row_length) {
    const T* x = from;
    double* y = &to(i, 0);
    for (int j = 0; j < row_length; ++j) *y++ = factor * *x++;
    std::fill_n(y, (row_length + 7) / 8 * 8 - row_length, 0.0);
  }
}
template <class T>
void write_rows(known_part from, int rows, int row_length, T* to, double factor = 1) {
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < row_length; ++j) *to++ = static_cast<T>(factor * from(i, j));
}

/// f(i, j) for an n x n matrix or its lower triangle, in squares that a transpose has in a cache.
template <bool Lower = false, class F>
void for_squares(int n, F f) {
  constexpr int side = 16;
  for (int i = 0; i < n; i += side)
    for (int j = 0; j < (Lower ? i + 1 : n); j += side)
      for (int k = i; k < std::min(i + side, n); ++k)
        for (int p = j; p < std::min(j + side, Lower ? k + 1 : n); ++p) f(k, p);
}

}  // namespace detail

}  // namespace cella::cpu
