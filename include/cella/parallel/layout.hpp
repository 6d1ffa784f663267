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

/// For each axis of the mesh the dimension of the tensor that it cuts into equal consecutive parts,
/// or `replicated`, or `partial`. Where several axes cut one dimension, the first of them cuts it
/// into the largest parts.
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
/// Whether each dimension has as many elements as its parts, or a multiple.
constexpr bool divides(const shape& s, const layout& l, const device_mesh& m) {
  for (int a = 0; a < m.axis_count; ++a) {
    if (l[a] >= s.rank) return false;
    if (l[a] >= 0 && (s[l[a]] == 0 || s[l[a]] % parts_of(l, m, l[a]) != 0)) return false;
  }
  return true;
}
/// What one rank has of a tensor.
constexpr shape part_of(shape s, const layout& l, const device_mesh& m) {
  for (int a = 0; a < m.axis_count; ++a)
    if (l[a] >= 0) s[l[a]] /= m[a].size;
  return s;
}
constexpr tensor_type part_of(tensor_type t, const layout& l, const device_mesh& m) {
  t.shape = part_of(t.shape, l, m);
  return t;
}
/// The first element along a dimension of the part that a rank has.
constexpr int first_of_part(const shape& whole, const layout& l, const device_mesh& m, int rank,
                            int dimension) {
  int index = 0;
  for (int a = 0; a < m.axis_count; ++a)
    if (l[a] == dimension) index = index * m[a].size + m.coordinate(rank, a);
  return index * (whole[dimension] / parts_of(l, m, dimension));
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
