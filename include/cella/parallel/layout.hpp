// How a tensor lies on a mesh: which of its dimensions each axis of the mesh cuts.
#pragma once

#include <array>
#include <cella/graph/shape.hpp>
#include <cella/graph/text.hpp>
#include <cella/parallel/mesh.hpp>
#include <cstdint>

namespace cella::parallel {

/// Along this mesh axis all ranks have the same numbers.
inline constexpr std::int8_t replicated = -1;
/// Along this mesh axis the numbers of all ranks have to be added up.
inline constexpr std::int8_t partial = -2;

/// Of `extent` elements in consecutive parts, how many part `i` has: all the same, or, where that
/// does not divide, the first ones have one more.
constexpr int size_of_part(int extent, int parts, int i) {
  return extent / parts + (i < extent % parts);
}
/// The first element of part `i`.
constexpr int first_of_part(int extent, int parts, int i) {
  return i * (extent / parts) + (i < extent % parts ? i : extent % parts);
}

/// For each axis of the mesh the dimension of the tensor that it cuts into consecutive parts, or
/// `replicated`, or `partial`. Where several axes cut one dimension, the first of them cuts it
/// into the largest parts, and each of the others those parts.
struct layout {
  std::array<std::int8_t, max_mesh_axes> axes{replicated, replicated, replicated};

  constexpr std::int8_t operator[](int a) const { return axes[std::size_t(a)]; }
  constexpr std::int8_t& operator[](int a) { return axes[std::size_t(a)]; }
  constexpr bool is_partial() const {
    for (std::int8_t d : axes)
      if (d == partial) return true;
    return false;
  }
  friend constexpr bool operator==(const layout&, const layout&) = default;
};

/// Among how many ranks a dimension is divided.
constexpr int parts_of(const layout& l, const device_mesh& m, int dimension) {
  int parts = 1;
  for (int a = 0; a < m.axis_count; ++a)
    if (l[a] == dimension) parts *= m[a].size;
  return parts;
}
/// Whether each part has an element at least.
constexpr bool can_lie(const shape& s, const layout& l, const device_mesh& m) {
  for (int a = 0; a < m.axis_count; ++a) {
    if (l[a] >= s.rank) return false;
    if (l[a] >= 0 && s[l[a]] < parts_of(l, m, l[a])) return false;
  }
  return true;
}
/// What a rank has of a tensor; nobody has more than rank 0.
constexpr shape part_of(shape s, const layout& l, const device_mesh& m, int rank = 0) {
  for (int a = 0; a < m.axis_count; ++a)
    if (l[a] >= 0) s[l[a]] = size_of_part(s[l[a]], m[a].size, m.coordinate(rank, a));
  return s;
}
constexpr tensor_type part_of(tensor_type t, const layout& l, const device_mesh& m, int rank = 0) {
  t.shape = part_of(t.shape, l, m, rank);
  return t;
}
/// Whether all ranks have parts of the same extents.
constexpr bool is_even(const shape& s, const layout& l, const device_mesh& m) {
  return part_of(s, l, m, 0) == part_of(s, l, m, m.ranks() - 1);
}
/// The first element along a dimension of the part that a rank has.
constexpr int first_of_part(const shape& whole, const layout& l, const device_mesh& m, int rank,
                            int dimension) {
  int first = 0, extent = whole[dimension];
  for (int a = 0; a < m.axis_count; ++a) {
    if (l[a] != dimension) continue;
    first += first_of_part(extent, m[a].size, m.coordinate(rank, a));
    extent = size_of_part(extent, m[a].size, m.coordinate(rank, a));
  }
  return first;
}

/// `[32/data,784]`; what is partial follows behind: `[10] sum/model`.
constexpr text layout_text(const shape& s, const layout& l, const device_mesh& m) {
  text t;
  t << "[";
  for (int d = 0; d < s.rank; ++d) {
    t << (d ? "," : "") << s[d];
    for (int a = 0; a < m.axis_count; ++a)
      if (l[a] == d) t << "/" << m[a].name.view();
  }
  t << "]";
  for (int a = 0; a < m.axis_count; ++a)
    if (l[a] == partial) t << " sum/" << m[a].name.view();
  return t;
}

}  // namespace cella::parallel
