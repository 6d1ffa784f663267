// How processes that are ranks watch each other, so that nobody hangs.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

namespace cella::parallel::detail {

/// Sees to it that nobody hangs: ranks of one machine write to shared memory since when they wait
/// for others and, from a thread of their own, that they are alive. Who has waited too long names
/// the rank that is to blame, and ends.
class mpi_watch {
 public:
  mpi_watch(int rank, double seconds) : rank_(rank), seconds_(seconds) {
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &here_);
    MPI_Comm_size(here_, &ranks_);
    int place = 0;
    MPI_Comm_rank(here_, &place);
    void* memory = nullptr;
    MPI_Win_allocate_shared(sizeof(sign), 1, MPI_INFO_NULL, here_, &memory, &window_);
    for (int r = 0; r < ranks_; ++r) {
      MPI_Aint size = 0;
      int unit = 0;
      MPI_Win_shared_query(window_, r, &size, &unit, &memory);
      signs_.push_back(static_cast<sign*>(memory));
    }
    own_ = new (signs_[std::size_t(place)]) sign{rank, now(), 0};
    MPI_Barrier(here_);
    thread_ = std::thread([this] { look(); });
  }
  mpi_watch(const mpi_watch&) = delete;
  mpi_watch& operator=(const mpi_watch&) = delete;
  ~mpi_watch() {
    over_ = true;
    thread_.join();
    MPI_Barrier(here_);
    MPI_Win_free(&window_);
    MPI_Comm_free(&here_);
  }
  /// While it lives, this rank waits for others.
  class waiting {
   public:
    explicit waiting(mpi_watch& w) : w_(w) { w_.own_->waits_since = now(); }
    waiting(const waiting&) = delete;
    waiting& operator=(const waiting&) = delete;
    ~waiting() { w_.own_->waits_since = 0; }

   private:
    mpi_watch& w_;
  };

 private:
  struct sign {
    int rank{};
    std::atomic<std::int64_t> alive_at{};     ///< in nanoseconds
    std::atomic<std::int64_t> waits_since{};  ///< 0: it does not wait
  };
  static std::int64_t now() {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  void look() {
    while (!over_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      own_->alive_at = now();
      const std::int64_t since = own_->waits_since;
      if (since && double(now() - since) > 1e9 * seconds_) give_up();
    }
  }
  [[noreturn]] void give_up() const {
    int who = -1;
    for (const sign* s : signs_)  // whose process stands still
      if (who < 0 && double(now() - s->alive_at) > 1e9 * std::min(seconds_, 1.0)) who = s->rank;
    for (const sign* s : signs_)
      if (who < 0 && s->waits_since == 0) who = s->rank;
    if (who >= 0)
      std::fprintf(
          stderr,
          "rank %d has not come to a collective operation for %g s (rank %d waits for it); "
          "all stop\n",
          who, seconds_, rank_);
    else
      std::fprintf(
          stderr,
          "rank %d has waited for %g s, and so have all ranks of its machine: one elsewhere "
          "has not come, or they do not run the same program; all stop\n",
          rank_, seconds_);
    std::_Exit(1);  // mpirun ends the others
  }

  int rank_;
  double seconds_;
  MPI_Comm here_{};
  int ranks_{};
  MPI_Win window_{};
  std::vector<sign*> signs_;
  sign* own_{};
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace cella::parallel::detail
