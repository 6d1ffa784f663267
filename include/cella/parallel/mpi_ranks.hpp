// Ranks as processes that MPI has started. Needs an implementation of MPI: link `cella::mpi`.
#pragma once

#include <mpi.h>

#include <cella/graph/error.hpp>
#include <cella/parallel/exchange.hpp>
#include <cella/parallel/mesh.hpp>
#include <climits>
#include <cstdio>
#include <exception>
#include <vector>

namespace cella::parallel {

/// The groups of a mesh whose ranks are those of MPI's world. Starts MPI, unless that is done, and
/// ends it in that case. The order of sums is MPI's.
class mpi_ranks {
 public:
  /// Throws `error` unless the world has as many ranks as the mesh.
  explicit mpi_ranks(const device_mesh& m) : mesh_(m) {
    int started = 0;
    MPI_Initialized(&started);
    if (!started) {
      MPI_Init(nullptr, nullptr);
      ends_ = true;
    }
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    if (size != m.ranks()) {
      if (ends_) MPI_Finalize();
      throw error(text() << "the mesh " << mesh_text(m) << " has " << m.ranks()
                         << " ranks, but MPI has started " << size << "; start mpirun -n "
                         << m.ranks());
    }
    for (int a = 0; a < m.axis_count; ++a) {
      const int c = m.coordinate(rank_, a);
      own_.groups[std::size_t(a)] = {m[a].size, c};
      MPI_Comm_split(MPI_COMM_WORLD, rank_ - c * m.stride(a), c, &groups_[std::size_t(a)]);
    }
    own_.self = this;
    own_.all_reduce = &all_reduce;
    own_.all_gather = &all_gather;
    own_.reduce_scatter = &reduce_scatter;
    own_.all_to_all = &all_to_all;
  }
  mpi_ranks(const mpi_ranks&) = delete;
  mpi_ranks& operator=(const mpi_ranks&) = delete;
  ~mpi_ranks() {
    for (int a = 0; a < mesh_.axis_count; ++a) MPI_Comm_free(&groups_[std::size_t(a)]);
    if (ends_) MPI_Finalize();
  }

  int rank() const { return rank_; }
  const communicator& own() const { return own_; }

  /// Calls f(rank, communicator). An exception that leaves it is printed, and ends all ranks.
  template <class F>
  void run(F f) {
    try {
      f(rank_, own_);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "rank %d: %s\n", rank_, e.what());
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }

 private:
  static mpi_ranks& of(void* self) { return *static_cast<mpi_ranks*>(self); }
  MPI_Comm group(int axis) const { return groups_[std::size_t(axis)]; }
  int size(int axis) const { return mesh_[axis].size; }
  std::byte* scratch(std::int64_t bytes) {
    if (std::int64_t(scratch_.size()) < bytes) scratch_.resize(std::size_t(bytes));
    return scratch_.data();
  }
  static int count(std::int64_t n) {
    if (n > INT_MAX)
      throw error(text() << "MPI exchanges " << INT_MAX << " elements of a tensor at most, not "
                         << n << "; divide it further");
    return int(n);
  }
  /// MPI's name of an element type that it can add; MPI_DATATYPE_NULL: it has none.
  static MPI_Datatype element_of(dtype t) {
    switch (t) {
      case dtype::f32:
        return MPI_FLOAT;
      case dtype::f64:
        return MPI_DOUBLE;
      case dtype::i32:
        return MPI_INT32_T;
      case dtype::i64:
        return MPI_INT64_T;
      default:
        return MPI_DATATYPE_NULL;
    }
  }
  /// All ranks' operands, one behind the other.
  std::vector<const std::byte*> gathered(int axis, const tensor_ref& in) {
    const std::int64_t bytes = in.type.bytes();
    std::byte* const all = scratch(bytes * size(axis));
    MPI_Allgather(in.data, count(bytes), MPI_BYTE, all, count(bytes), MPI_BYTE, group(axis));
    std::vector<const std::byte*> at;
    for (int r = 0; r < size(axis); ++r) at.push_back(all + r * bytes);
    return at;
  }

  static void all_reduce(void* self, int axis, const tensor_ref& in, const tensor_ref& out) {
    mpi_ranks& o = of(self);
    const MPI_Datatype t = element_of(in.type.element);
    if (t != MPI_DATATYPE_NULL)
      MPI_Allreduce(in.data, out.data, count(in.type.size()), t, MPI_SUM, o.group(axis));
    else
      detail::sum_elements(o.gathered(axis, in), in.type, 0, in.type.size(), out.data);
  }
  static void all_gather(void* self, int axis, int dimension, const tensor_ref& in,
                         const tensor_ref& out) {
    mpi_ranks& o = of(self);
    if (in.type.shape.size(0, dimension) == 1) {
      const int bytes = count(in.type.bytes());
      MPI_Allgather(in.data, bytes, MPI_BYTE, out.data, bytes, MPI_BYTE, o.group(axis));
      return;
    }
    const auto all = o.gathered(axis, in);
    for (int r = 0; r < o.size(axis); ++r)
      cella::detail::copy_box(
          {const_cast<std::byte*>(all[std::size_t(r)]), in.type}, {}, out,
          cella::detail::place_along(dimension, std::int64_t{r} * in.type[dimension]),
          in.type.shape);
  }
  /// Writes the part of `in` for each rank, one behind the other.
  std::byte* in_parts(int axis, int dimension, const tensor_ref& in, const tensor_type& part,
                      std::int64_t room) {
    std::byte* const all = scratch(room);
    for (int r = 0; r < size(axis); ++r)
      cella::detail::copy_box(
          in, cella::detail::place_along(dimension, std::int64_t{r} * part[dimension]),
          {all + r * part.bytes(), part}, {}, part.shape);
    return all;
  }
  static void reduce_scatter(void* self, int axis, int dimension, const tensor_ref& in,
                             const tensor_ref& out) {
    mpi_ranks& o = of(self);
    const MPI_Datatype t = element_of(in.type.element);
    if (t == MPI_DATATYPE_NULL)
      return detail::sum_part(o.gathered(axis, in), in.type, dimension,
                              o.own_.groups[std::size_t(axis)].coordinate, out);
    const std::byte* const parts = o.in_parts(axis, dimension, in, out.type, in.type.bytes());
    MPI_Reduce_scatter_block(parts, out.data, count(out.type.size()), t, MPI_SUM, o.group(axis));
  }
  static void all_to_all(void* self, int axis, int joined, int cut, const tensor_ref& in,
                         const tensor_ref& out) {
    mpi_ranks& o = of(self);
    tensor_type piece = in.type;
    piece.shape[cut] = out.type[cut];
    const std::int64_t bytes = in.type.bytes();
    std::byte* const sent = o.in_parts(axis, cut, in, piece, 2 * bytes);
    std::byte* const got = sent + bytes;
    const int each = count(piece.bytes());
    MPI_Alltoall(sent, each, MPI_BYTE, got, each, MPI_BYTE, o.group(axis));
    for (int r = 0; r < o.size(axis); ++r)
      cella::detail::copy_box({got + r * piece.bytes(), piece}, {}, out,
                              cella::detail::place_along(joined, std::int64_t{r} * piece[joined]),
                              piece.shape);
  }

  device_mesh mesh_;
  bool ends_ = false;
  int rank_ = 0;
  std::array<MPI_Comm, max_mesh_axes> groups_{};
  communicator own_;
  std::vector<std::byte> scratch_;
};

}  // namespace cella::parallel
