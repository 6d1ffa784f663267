// An operation applied to operands that no public function has checked, because they come from a
// file: what the rule `fits` of an operation's struct looks at.
#pragma once

#include <cella/graph/graph.hpp>
#include <cella/graph/list.hpp>
#include <cstdint>

namespace cella {

/// A node with the types of its operands, as many as the operation takes.
struct op_application {
  const graph& g;
  node_id id{};
  const node& n;
  list<tensor_type> in;

  template <class Options>
  Options as() const {
    return n.attributes.as<Options>();
  }
  const shape& of(int k) const { return in[std::size_t(k)].shape; }
  int rank(int k = 0) const { return of(k).rank; }
  bool same(int i, int j) const { return in[std::size_t(i)] == in[std::size_t(j)]; }
  bool whole(int k) const { return is_integer(in[std::size_t(k)].element); }
};

/// Whether tensors may have elements of type `t`.
constexpr bool is_flat(dtype t) { return size_of(t) > 0; }
constexpr bool is_axis(std::int64_t axis, int rank) { return 0 <= axis && axis < rank; }
/// Whether the list names `count` different axes below `limit`, and ends.
constexpr bool names_axes(const iteration_space::axes& axes, int count, int limit) {
  unsigned seen = 0;
  for (int i = 0; i < max_rank; ++i) {
    const int a = axes[std::size_t(i)];
    if (i >= count ? a != iteration_space::none : !is_axis(a, limit) || (seen >> a & 1))
      return false;
    if (i < count) seen |= 1u << a;
  }
  return true;
}
/// Whether the first `count` extents of both are the same.
constexpr bool begins_with(const shape& s, const shape& lead, int count) {
  bool begins = count <= s.rank && count <= lead.rank;
  for (int d = 0; begins && d < count; ++d) begins = s[d] == lead[d];
  return begins;
}

}  // namespace cella
