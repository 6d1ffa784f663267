// Ranks as processes that MPI has started. Needs an implementation of MPI: link `cella::mpi`.
#pragma once

#include <mpi.h>

#include <cella/graph/error.hpp>
#include <cella/parallel/exchange.hpp>
#include <cella/parallel/mesh.hpp>
#include <cella/parallel/mpi_shared.hpp>
#include <cella/parallel/mpi_watch.hpp>
#include <climits>
#include <cstdio>
#include <deque>
#include <exception>
#include <memory>
#include <vector>

namespace cella::parallel {

/// The groups of a mesh whose ranks are those of MPI's world. Starts MPI, unless that is done, and
/// ends it in that case. Groups whose ranks are all on one machine exchange through memory that
/// they share, but for messages from rank to rank; elsewhere the order of sums is MPI's. A rank
/// that does not come to a collective operation is named on stderr by those that wait, if it is on
/// the same machine, and all end.
class mpi_ranks {
 public:
  /// Throws `error` unless the world has as many ranks as the mesh. So many seconds a rank waits
  /// for the others.
  explicit mpi_ranks(const device_mesh& m, double timeout_seconds = 60) : mesh_(m) {
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
    watch_ = std::make_unique<detail::mpi_watch>(rank_, timeout_seconds);
    for (int a = 0; a < m.axis_count; ++a)
      if (m[a].size > 1 && detail::shared_group::all_are_here(group(a), m[a].size))
        here_[std::size_t(a)] =
            std::make_unique<detail::shared_group>(group(a), own_.groups[std::size_t(a)], *watch_);
    own_.self = this;
    own_.all_reduce = &all_reduce;
    own_.start_all_reduce = &start_all_reduce;
    own_.finish_all_reduce = &finish_all_reduce;
    own_.send = &send;
    own_.receive = &receive;
    own_.all_gather = &all_gather;
    own_.reduce_scatter = &reduce_scatter;
    own_.all_to_all = &all_to_all;
  }
  mpi_ranks(const mpi_ranks&) = delete;
  mpi_ranks& operator=(const mpi_ranks&) = delete;
  ~mpi_ranks() {
    for (under_way& one : messages_)
      if (one.request != MPI_REQUEST_NULL) MPI_Wait(&one.request, MPI_STATUS_IGNORE);
    for (auto& shared : here_) shared.reset();
    watch_.reset();
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
  detail::shared_group* here(int axis) const { return here_[std::size_t(axis)].get(); }
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
    const detail::mpi_watch::waiting here(*watch_);
    MPI_Allgather(in.data, count(bytes), MPI_BYTE, all, count(bytes), MPI_BYTE, group(axis));
    std::vector<const std::byte*> at;
    for (int r = 0; r < size(axis); ++r) at.push_back(all + r * bytes);
    return at;
  }

  static void all_reduce(void* self, int axis, const tensor_ref& in, const tensor_ref& out) {
    mpi_ranks& o = of(self);
    if (detail::shared_group* const s = o.here(axis)) return s->all_reduce(in, out);
    const MPI_Datatype t = element_of(in.type.element);
    const detail::mpi_watch::waiting here(*o.watch_);
    if (t != MPI_DATATYPE_NULL)
      MPI_Allreduce(in.data == out.data ? MPI_IN_PLACE : in.data, out.data, count(in.type.size()),
                    t, MPI_SUM, o.group(axis));
    else
      detail::sum_elements(o.gathered(axis, in), in.type, 0, in.type.size(), out.data);
  }
  static void start_all_reduce(void* self, int axis, const tensor_ref& in) {
    if (of(self).here(axis)) return;  // cores are busy: nobody would make it meanwhile
    sums_under_way& s = of(self).under_way_[std::size_t(axis)];
    if (s.started == s.sums.size()) s.sums.emplace_back();
    under_way& one = s.sums[s.started++];
    const MPI_Datatype t = element_of(in.type.element);
    if (t == MPI_DATATYPE_NULL) return;
    if (std::int64_t(one.memory.size()) < in.type.bytes())
      one.memory.resize(std::size_t(in.type.bytes()));
    MPI_Iallreduce(in.data, one.memory.data(), count(in.type.size()), t, MPI_SUM,
                   of(self).group(axis), &one.request);
  }
  static void finish_all_reduce(void* self, int axis, const tensor_ref& in, const tensor_ref& out) {
    if (of(self).here(axis)) return all_reduce(self, axis, in, out);
    sums_under_way& s = of(self).under_way_[std::size_t(axis)];
    under_way& one = s.sums[s.finished++];
    if (s.finished == s.started) s.started = s.finished = 0;
    if (element_of(in.type.element) == MPI_DATATYPE_NULL) return all_reduce(self, axis, in, out);
    const detail::mpi_watch::waiting here(*of(self).watch_);
    MPI_Wait(&one.request, MPI_STATUS_IGNORE);
    std::memcpy(out.data, one.memory.data(), std::size_t(in.type.bytes()));
  }
  /// Takes the memory of a message that has gone, if there is one.
  static void send(void* self, int axis, int to, int tag, const tensor_ref& in) {
    mpi_ranks& o = of(self);
    under_way* gone = nullptr;
    for (under_way& one : o.messages_) {
      int is_gone = 1;
      if (one.request != MPI_REQUEST_NULL) MPI_Test(&one.request, &is_gone, MPI_STATUS_IGNORE);
      if (is_gone && !gone) gone = &one;
    }
    if (!gone) gone = &o.messages_.emplace_back();
    const int bytes = count(in.type.bytes());
    gone->memory.assign(in.data, in.data + bytes);
    MPI_Isend(gone->memory.data(), bytes, MPI_BYTE, to, tag, o.group(axis), &gone->request);
  }
  static void receive(void* self, int axis, int from, int tag, const tensor_ref& out) {
    mpi_ranks& o = of(self);
    const detail::mpi_watch::waiting here(*o.watch_);
    MPI_Recv(out.data, count(out.type.bytes()), MPI_BYTE, from, tag, o.group(axis),
             MPI_STATUS_IGNORE);
  }
  static void all_gather(void* self, int axis, int dimension, const tensor_ref& in,
                         const tensor_ref& out) {
    mpi_ranks& o = of(self);
    if (detail::shared_group* const s = o.here(axis)) return s->all_gather(dimension, in, out);
    const int extent = out.type[dimension], ranks = o.size(axis);
    const bool in_place = in.type.shape.size(0, dimension) == 1;
    std::byte* const all = in_place ? out.data : o.scratch(out.type.bytes());
    const auto part = [&](int r) {
      return detail::type_of_part(in.type, dimension, extent, ranks, r);
    };
    o.received_.list(ranks, [&](int r) { return part(r).bytes(); });
    const detail::mpi_watch::waiting here(*o.watch_);
    MPI_Allgatherv(in.data, count(in.type.bytes()), MPI_BYTE, all, o.received_.counts.data(),
                   o.received_.first.data(), MPI_BYTE, o.group(axis));
    for (int r = 0; r < ranks && !in_place; ++r)
      cella::detail::copy_box(
          {all + o.received_.first[std::size_t(r)], part(r)}, {}, out,
          cella::detail::place_along(dimension, first_of_part(extent, ranks, r)), part(r).shape);
  }
  /// Writes the part of `in` for each rank, one behind the other, and lists them in `sent_`, in
  /// units of so many bytes.
  std::byte* in_parts(int axis, int dimension, const tensor_ref& in, std::int64_t room,
                      std::int64_t unit) {
    const int extent = in.type[dimension], ranks = size(axis);
    const auto part = [&](int r) {
      return detail::type_of_part(in.type, dimension, extent, ranks, r);
    };
    sent_.list(ranks, [&](int r) { return part(r).bytes() / unit; });
    std::byte* const all = scratch(room);
    for (int r = 0; r < ranks; ++r)
      cella::detail::copy_box(
          in, cella::detail::place_along(dimension, first_of_part(extent, ranks, r)),
          {all + sent_.first[std::size_t(r)] * unit, part(r)}, {}, part(r).shape);
    return all;
  }
  static void reduce_scatter(void* self, int axis, int dimension, const tensor_ref& in,
                             const tensor_ref& out) {
    mpi_ranks& o = of(self);
    if (detail::shared_group* const s = o.here(axis)) return s->reduce_scatter(dimension, in, out);
    const MPI_Datatype t = element_of(in.type.element);
    if (t == MPI_DATATYPE_NULL)
      return detail::sum_part(o.gathered(axis, in), in.type, dimension,
                              o.own_.groups[std::size_t(axis)].coordinate, out);
    const std::byte* const parts =
        o.in_parts(axis, dimension, in, in.type.bytes(), std::int64_t(size_of(in.type.element)));
    const detail::mpi_watch::waiting here(*o.watch_);
    MPI_Reduce_scatter(parts, out.data, o.sent_.counts.data(), t, MPI_SUM, o.group(axis));
  }
  static void all_to_all(void* self, int axis, int joined, int cut, const tensor_ref& in,
                         const tensor_ref& out) {
    mpi_ranks& o = of(self);
    if (detail::shared_group* const s = o.here(axis)) return s->all_to_all(joined, cut, in, out);
    const int ranks = o.size(axis), extent = out.type[joined];
    const auto piece = [&](int r) {  // of rank r's operand, the part for this rank
      tensor_type t = detail::type_of_part(in.type, joined, extent, ranks, r);
      t.shape[cut] = out.type[cut];
      return t;
    };
    o.received_.list(ranks, [&](int r) { return piece(r).bytes(); });
    const std::int64_t bytes = in.type.bytes();
    std::byte* const sent = o.in_parts(axis, cut, in, bytes + out.type.bytes(), 1);
    std::byte* const got = sent + bytes;
    const detail::mpi_watch::waiting here(*o.watch_);
    MPI_Alltoallv(sent, o.sent_.counts.data(), o.sent_.first.data(), MPI_BYTE, got,
                  o.received_.counts.data(), o.received_.first.data(), MPI_BYTE, o.group(axis));
    for (int r = 0; r < ranks; ++r)
      cella::detail::copy_box({got + o.received_.first[std::size_t(r)], piece(r)}, {}, out,
                              cella::detail::place_along(joined, first_of_part(extent, ranks, r)),
                              piece(r).shape);
  }

  struct under_way {
    MPI_Request request = MPI_REQUEST_NULL;
    std::vector<std::byte> memory;
  };
  /// In the order of their start; memory stays for the next step.
  struct sums_under_way {
    std::deque<under_way> sums;
    std::size_t started{}, finished{};
  };
  /// How much of each rank lies where in a message.
  struct parts_of_message {
    std::vector<int> counts, first;
    template <class F>
    void list(int ranks, F size) {
      counts.resize(std::size_t(ranks));
      first.resize(std::size_t(ranks));
      std::int64_t at = 0;
      for (int r = 0; r < ranks; ++r) {
        first[std::size_t(r)] = count(at);
        at += size(r);
        counts[std::size_t(r)] = count(size(r));
      }
    }
  };

  device_mesh mesh_;
  bool ends_ = false;
  int rank_ = 0;
  std::array<MPI_Comm, max_mesh_axes> groups_{};
  communicator own_;
  std::vector<std::byte> scratch_;
  parts_of_message sent_, received_;
  std::array<sums_under_way, max_mesh_axes> under_way_;
  std::deque<under_way> messages_;
  std::unique_ptr<detail::mpi_watch> watch_;
  std::array<std::unique_ptr<detail::shared_group>, max_mesh_axes> here_;
};

}  // namespace cella::parallel
