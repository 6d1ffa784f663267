// What processes of one machine exchange through memory that they share, where MPI would send
// messages.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cella/parallel/exchange.hpp>
#include <cella/parallel/mpi_watch.hpp>
#include <cella/parallel/thread_watch.hpp>
#include <cstring>
#include <new>
#include <span>
#include <vector>

namespace cella::parallel::detail {

/// Memory of a group of ranks, of which each writes a part and reads all.
class shared_board {
 public:
  shared_board(MPI_Comm group, const communicator::group& own) : group_(group), own_(own) {
    reserve(0);
  }
  shared_board(const shared_board&) = delete;
  shared_board& operator=(const shared_board&) = delete;
  ~shared_board() { MPI_Win_free(&window_); }

  /// Room for so many bytes of each rank. All ranks call it with the same number.
  void reserve(std::int64_t bytes) {
    if (window_ != MPI_WIN_NULL && bytes <= room_) return;
    if (window_ != MPI_WIN_NULL) MPI_Win_free(&window_);
    // The signs of the next rank lie behind, on a cache line of their own.
    room_ = (std::max<std::int64_t>(bytes, 1 << 12) + 63) / 64 * 64;
    void* memory = nullptr;
    MPI_Win_allocate_shared(MPI_Aint(sizeof(signs) + std::size_t(room_)), 1, MPI_INFO_NULL, group_,
                            &memory, &window_);
    signs_.clear();
    at_.clear();
    for (int r = 0; r < own_.size; ++r) {
      MPI_Aint size = 0;
      int unit = 0;
      MPI_Win_shared_query(window_, r, &size, &unit, &memory);
      signs_.push_back(static_cast<signs*>(memory));
      at_.push_back(static_cast<std::byte*>(memory) + sizeof(signs));
    }
    new (signs_[std::size_t(own_.coordinate)]) signs;
    turn_ = 0;
    MPI_Barrier(group_);
  }
  /// What each rank shows.
  const std::vector<std::byte*>& at() const { return at_; }
  std::byte* own() const { return at_[std::size_t(own_.coordinate)]; }

  /// This rank has written what it shows in the next turn, or its share of the sum in this one.
  void show() { sign().shown.store(++turn_, std::memory_order_release); }
  void sum_up() { sign().summed.store(turn_, std::memory_order_release); }
  bool all_have_shown() const { return all_have(&signs::shown); }
  bool all_have_summed() const { return all_have(&signs::summed); }

 private:
  struct alignas(64) signs {
    std::atomic<std::int64_t> shown{0}, summed{0};
  };
  signs& sign() const { return *signs_[std::size_t(own_.coordinate)]; }
  bool all_have(std::atomic<std::int64_t> signs::*which) const {
    for (const signs* s : signs_)
      if ((s->*which).load(std::memory_order_acquire) < turn_) return false;
    return true;
  }

  MPI_Comm group_;
  const communicator::group own_;
  MPI_Win window_ = MPI_WIN_NULL;
  std::int64_t room_{}, turn_{};
  std::vector<signs*> signs_;
  std::vector<std::byte*> at_;
};

/// The collective operations of a group whose ranks are all on one machine. Sums are in the order
/// of the ranks: all have the same bits.
class shared_group {
 public:
  /// All ranks of the group call it.
  shared_group(MPI_Comm group, const communicator::group& own, mpi_watch& watch)
      : own_(own),
        watch_(watch),
        first_(group, own),
        second_(group, own),
        operands_(std::size_t(own.size)) {}

  static bool all_are_here(MPI_Comm group, int size) {
    MPI_Comm here{};
    MPI_Comm_split_type(group, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    int count = 0;
    MPI_Comm_size(here, &count);
    MPI_Comm_free(&here);
    int all = count == size, least = 0;
    MPI_Allreduce(&all, &least, 1, MPI_INT, MPI_MIN, group);
    return least;
  }

  void all_reduce(const tensor_ref& in, const tensor_ref& out) {
    const auto size = std::int64_t(size_of(in.type.element));
    for_each_piece(in.type.size(), size, [&](std::int64_t i, std::int64_t count) {
      const tensor_type t{in.type.element, {int(count)}};
      sum_piece({in.data + i * size, t}, {out.data + i * size, t});
    });
  }
  void all_gather(int dimension, const tensor_ref& in, const tensor_ref& out) {
    const parts all(in.type, dimension, out.type[dimension], own_.size);
    if (!all.in_one_piece) return join_parts(shown(in, all.bytes(0)), in.type, dimension, out);
    for_each_piece(all.bytes(0), 1, [&](std::int64_t i, std::int64_t count) {
      shared_board& b = next(count);
      const auto here = [&](int r) { return std::clamp<std::int64_t>(all.bytes(r) - i, 0, count); };
      std::memcpy(b.own(), in.data + i, std::size_t(here(own_.coordinate)));
      show(b, 0, in.data + i);
      for (int r = 0; r < own_.size; ++r)
        std::memcpy(out.data + all.first(r) + i, operands_[std::size_t(r)], std::size_t(here(r)));
    });
  }
  void reduce_scatter(int dimension, const tensor_ref& in, const tensor_ref& out) {
    const parts all(in.type, dimension, in.type[dimension], own_.size);
    if (!all.in_one_piece)
      return sum_part(shown(in, in.type.bytes()), in.type, dimension, own_.coordinate, out);
    const auto size = std::int64_t(size_of(in.type.element));
    for_each_piece(all.bytes(0) / size, size, [&](std::int64_t i, std::int64_t count) {
      const std::int64_t room = count * size;
      shared_board& b = next(room * own_.size);
      const auto here = [&](int r) {
        return std::clamp<std::int64_t>(all.bytes(r) - i * size, 0, room);
      };
      const auto at = [&](int r) { return in.data + all.first(r) + i * size; };
      for (int r = 0; r < own_.size; ++r)
        if (r != own_.coordinate) std::memcpy(b.own() + r * room, at(r), std::size_t(here(r)));
      show(b, own_.coordinate * room, at(own_.coordinate));
      sum_elements(operands_, in.type, 0, here(own_.coordinate) / size, out.data + i * size);
    });
  }
  void all_to_all(int joined, int cut, const tensor_ref& in, const tensor_ref& out) {
    const parts all(in.type, joined, out.type[joined], own_.size);
    exchange_parts(shown(in, all.bytes(0)), in.type, cut, own_.coordinate, out, joined);
  }

 private:
  /// All ranks add up all of it: that is quicker than to wait for each other once more.
  static constexpr std::int64_t small = 1 << 12;

  /// So much of an operand is shown at a time: it stays in the cache, and takes little memory.
  static constexpr std::int64_t piece = 1 << 17;

  /// The parts of a tensor along a dimension: how many bytes each rank has, and behind how many.
  struct parts {
    parts(const tensor_type& like, int dimension, int places, int count)
        : extent(places),
          ranks(count),
          in_one_piece(like.shape.size(0, dimension) == 1),
          each(like.shape.size(0, dimension) * like.shape.size(dimension + 1, like.rank()) *
               std::int64_t(size_of(like.element))) {}
    std::int64_t first(int r) const { return first_of_part(extent, ranks, r) * each; }
    /// The first part is the largest.
    std::int64_t bytes(int r) const { return size_of_part(extent, ranks, r) * each; }

    int extent, ranks;
    bool in_one_piece;    ///< each of them: then they lie one behind the other
    std::int64_t each{};  ///< bytes of one place
  };
  /// f(first, count) for the pieces of so many elements.
  template <class F>
  static void for_each_piece(std::int64_t elements, std::int64_t size, F f) {
    for (std::int64_t i = 0; i < elements; i += piece / size)
      f(i, std::min(piece / size, elements - i));
  }
  void sum_piece(const tensor_ref& in, const tensor_ref& out) {
    const tensor_type& t = in.type;
    if (t.bytes() <= small) return sum_elements(shown(in, t.bytes()), t, 0, t.size(), out.data);
    shared_board& b = next(t.bytes());
    // Nobody else reads the share that this rank adds up.
    const auto size = std::int64_t(size_of(t.element));
    const auto share = [&](int r) { return first_of_share(t, r, own_.size) * size; };
    const std::int64_t first = share(own_.coordinate), end = share(own_.coordinate + 1);
    copy(in.data, b.own(), 0, first);
    copy(in.data, b.own(), end, t.bytes());
    show(b, 0, in.data);
    // Sums are made on the board, for `out` may be where this rank's operand is.
    const std::array both{b.own(), out.data};
    sum_share(operands_, t, own_, both);
    b.sum_up();
    wait([&] { return b.all_have_summed(); });
    for (int r = 0; r < own_.size; ++r)
      if (r != own_.coordinate) copy(b.at()[std::size_t(r)], out.data, share(r), share(r + 1));
  }
  static void copy(const std::byte* from, std::byte* to, std::int64_t first, std::int64_t end) {
    if (end > first) std::memcpy(to + first, from + first, std::size_t(end - first));
  }
  /// Boards are taken in turn. Who writes to one has seen that all have come to the turn after the
  /// last that it was used in, and so have read what was there.
  shared_board& next(std::int64_t bytes) {
    is_second_ = !is_second_;
    shared_board& b = is_second_ ? second_ : first_;
    b.reserve(bytes);
    return b;
  }
  /// What all ranks show, from byte `first` on, and the operand of this one where it is.
  void show(shared_board& b, std::int64_t first, std::byte* own) {
    b.show();
    for (std::size_t r = 0; r < operands_.size(); ++r) operands_[r] = b.at()[r] + first;
    operands_[std::size_t(own_.coordinate)] = own;
    wait([&] { return b.all_have_shown(); });
  }
  /// The operands of all ranks, each as a whole, on the board.
  std::span<const std::byte* const> shown(const tensor_ref& in, std::int64_t room) {
    shared_board& b = next(room);
    copy(in.data, b.own(), 0, in.type.bytes());
    show(b, 0, b.own());
    return operands_;
  }
  /// Messages that are under way meanwhile go on.
  template <class Condition>
  void wait(Condition holds) {
    if (holds()) return;
    const mpi_watch::waiting here(watch_);
    for (int looks = 1; !holds(); ++looks) {
      int is_there = 0;
      if (looks > 2000)
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
      pass_time(looks);
    }
  }

  const communicator::group own_;
  mpi_watch& watch_;
  shared_board first_, second_;
  bool is_second_ = false;
  std::vector<const std::byte*> operands_;
};

}  // namespace cella::parallel::detail
