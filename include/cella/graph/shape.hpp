// Static extents of a tensor, and the tensor type: extents with an element type.
#pragma once

#include <array>
#include <cella/graph/dtype.hpp>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>

namespace cella {

inline constexpr int max_rank = 8;

/// What functions return that return nothing. g++ knows no place of calls that yield such objects,
/// so that it names the line that asked for the program instead of one of the library.
struct no_place {
  constexpr ~no_place() {}
};
/// Not constexpr on purpose: where a shape is written for the compiler, that prints this call.
inline no_place a_tensor_has_at_most_8_axes() {
  throw std::length_error("a tensor has at most 8 axes");
}

/// Up to eight extents, outermost first. A scalar has rank 0. Extents beyond the rank are zero, so
/// that two equal shapes compare equal member by member.
struct shape {
  std::int32_t rank{};
  std::int32_t extents[max_rank]{};  // std::array would cost the compiler two calls for each access

  constexpr shape() = default;
  constexpr shape(std::initializer_list<std::int64_t> all) {
    if (all.size() > std::size_t(max_rank)) const no_place stop = a_tensor_has_at_most_8_axes();
    for (auto e : all) push_back(static_cast<int>(e));
  }

  constexpr std::int32_t operator[](int axis) const { return extents[axis]; }
  constexpr std::int32_t& operator[](int axis) { return extents[axis]; }
  constexpr const std::int32_t* begin() const { return extents; }
  constexpr const std::int32_t* end() const { return extents + rank; }

  /// Number of elements; 1 for a scalar.
  constexpr std::int64_t size() const { return size(0, rank); }
  /// Product of the extents of axes [first, last).
  constexpr std::int64_t size(int first, int last) const {
    if (last > max_rank) __builtin_unreachable();  // else g++ sees elements behind the last one
    std::int64_t n = 1;
    for (int i = first; i < last; ++i) n *= extents[i];
    return n;
  }

  constexpr void push_back(int extent) { (*this)[rank++] = extent; }
  constexpr void insert(int axis, int extent) {
    for (int i = rank; i > axis; --i) (*this)[i] = (*this)[i - 1];
    (*this)[axis] = extent;
    ++rank;
  }
  constexpr void erase(int axis) {
    for (int i = axis + 1; i < rank; ++i) (*this)[i - 1] = (*this)[i];
    (*this)[--rank] = 0;
  }

  /// By hand, since compilers compare arrays member by member to their ends.
  friend constexpr bool operator==(const shape& a, const shape& b) {
    if (a.rank != b.rank) return false;
    for (int i = 0; i < a.rank; ++i) {
      if (a.extents[i] != b.extents[i]) return false;
    }
    return true;
  }
};

/// Elements to step along each axis of a dense row-major tensor.
constexpr std::array<std::int64_t, max_rank> row_major_strides(const shape& s) {
  std::array<std::int64_t, max_rank> strides{};
  std::int64_t n = 1;
  for (int i = s.rank; i-- > 0;) {
    strides[std::size_t(i)] = n;
    n *= s[i];
  }
  return strides;
}

/// What a tensor is at compile time: element type and extents.
struct tensor_type {
  dtype element{};
  cella::shape shape{};

  constexpr int rank() const { return shape.rank; }
  constexpr std::int32_t operator[](int axis) const { return shape[axis]; }
  constexpr std::int64_t size() const { return shape.size(); }
  constexpr std::int64_t bytes() const { return size() * std::int64_t(size_of(element)); }

  friend constexpr bool operator==(const tensor_type&, const tensor_type&) = default;
};

}  // namespace cella
