// A communicator of a rank that runs alone: to measure what it computes.
#pragma once

#include <algorithm>
#include <cella/parallel/communicator.hpp>
#include <cella/parallel/mesh.hpp>
#include <cstring>

namespace cella::parallel {

/// The communicator of a rank of a mesh whose other ranks are not there: they are taken to have the
/// same numbers, and what they send is left as it is. The numbers mean nothing, the time of a step
/// without its messages does.
inline communicator lone_rank(const device_mesh& m, int rank);

// ------------------------------------------------------------------------------------------------

namespace detail {

/// Fills `out` with as much of `in` as there is, over and over.
inline void copy_over(const tensor_ref& in, const tensor_ref& out) {
  if (in.data == out.data) return;
  const std::int64_t have = in.type.bytes(), want = out.type.bytes();
  for (std::int64_t at = 0; have > 0 && at < want; at += have)
    std::memcpy(out.data + at, in.data, std::size_t(std::min(have, want - at)));
}

}  // namespace detail

inline communicator lone_rank(const device_mesh& m, int rank) {
  communicator c;
  for (int a = 0; a < m.axis_count; ++a)
    c.groups[std::size_t(a)] = {m[a].size, m.coordinate(rank, a)};
  c.all_reduce = [](void*, int, const tensor_ref& in, const tensor_ref& out) {
    detail::copy_over(in, out);
  };
  c.start_all_reduce = [](void*, int, const tensor_ref&) {};
  c.finish_all_reduce = c.all_reduce;
  c.send = [](void*, int, int, int, const tensor_ref&) {};
  c.receive = [](void*, int, int, int, const tensor_ref&) {};
  c.all_gather = [](void*, int, int, const tensor_ref& in, const tensor_ref& out) {
    detail::copy_over(in, out);
  };
  c.reduce_scatter = c.all_gather;
  c.all_to_all = [](void*, int, int, int, const tensor_ref& in, const tensor_ref& out) {
    detail::copy_over(in, out);
  };
  return c;
}

}  // namespace cella::parallel
