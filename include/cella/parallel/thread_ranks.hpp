// Ranks as threads of one process, which exchange through the memory that they share.
#pragma once

#include <atomic>
#include <cella/backend/host/buffer.hpp>
#include <cella/graph/error.hpp>
#include <cella/parallel/exchange.hpp>
#include <cella/parallel/mesh.hpp>
#include <chrono>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace cella::parallel {

/// A rank that another one's failure has ended.
struct rank_error : error {
  using error::error;
};

namespace detail {

/// Where the threads of a group wait for each other. When a rank has failed, all others throw
/// instead of waiting.
class meeting {
 public:
  explicit meeting(int size) : size_(size) {}
  void arrive_and_wait(const std::atomic<int>& failed) {
    const std::uint32_t turn = turn_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
      arrived_.store(0, std::memory_order_relaxed);
      turn_.store(turn + 1, std::memory_order_release);
      return;
    }
    for (int spins = 0; turn_.load(std::memory_order_acquire) == turn; ++spins) {
      const int who = failed.load(std::memory_order_relaxed);
      if (who >= 0)
        throw rank_error(text() << "rank " << who << " has failed; the others stop, too");
      // More ranks than cores: who waits makes room.
      if (spins > 4000)
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      else if (spins > 2000)
        std::this_thread::yield();
    }
  }

 private:
  const int size_;
  std::atomic<int> arrived_{0};
  std::atomic<std::uint32_t> turn_{0};
};

/// What the threads of a group show each other.
struct thread_group {
  explicit thread_group(int size) : at(size), in(std::size_t(size)), out(std::size_t(size)) {}
  meeting at;
  std::vector<const std::byte*> in;
  std::vector<std::byte*> out;
};

}  // namespace detail

/// The groups of a mesh whose ranks are threads. Collective operations wait for each other and
/// copy: no memory is taken, no message made.
class thread_ranks {
 public:
  explicit thread_ranks(const device_mesh& m) : mesh_(m) {
    for (int r = 0; r < m.ranks(); ++r) {
      member& one = ranks_.emplace_back();
      one.owner = this;
      for (int a = 0; a < m.axis_count; ++a) {
        const int c = m.coordinate(r, a);
        one.of.groups[std::size_t(a)] = {m[a].size, c};
        const int first = r - c * m.stride(a);
        one.groups[std::size_t(a)] =
            c == 0 ? groups_.emplace_back(std::make_unique<detail::thread_group>(m[a].size)).get()
                   : ranks_[std::size_t(first)].groups[std::size_t(a)];
      }
    }
    for (member& one : ranks_) {
      one.of.self = &one;
      one.of.all_reduce = &all_reduce;
      one.of.all_gather = &all_gather;
      one.of.reduce_scatter = &reduce_scatter;
      one.of.all_to_all = &all_to_all;
    }
  }
  thread_ranks(const thread_ranks&) = delete;
  thread_ranks& operator=(const thread_ranks&) = delete;

  const device_mesh& mesh() const { return mesh_; }
  const communicator& of(int rank) const { return ranks_[std::size_t(rank)].of; }

  /// Calls f(rank, its communicator) on a thread for each rank, and waits for all. Of the
  /// exceptions that leave them the first is thrown again; the other ranks stop where they next
  /// wait for the one that failed.
  template <class F>
  void run(F f) {
    failed_ = -1;
    std::exception_ptr first;
    std::mutex lock;
    std::vector<std::thread> threads;
    for (int r = 0; r < mesh_.ranks(); ++r) {
      threads.emplace_back([&, r] {
        try {
          f(r, of(r));
        } catch (...) {
          const std::scoped_lock guard(lock);
          if (!first) first = std::current_exception();
          int nobody = -1;
          failed_.compare_exchange_strong(nobody, r);
        }
      });
    }
    for (std::thread& t : threads) t.join();
    if (first) std::rethrow_exception(first);
  }

 private:
  struct member {
    communicator of;
    thread_ranks* owner{};
    std::array<detail::thread_group*, max_mesh_axes> groups{};
  };

  struct turn {
    detail::thread_group& group;
    const std::atomic<int>& failed;
    int coordinate;
    int size;

    turn(void* self, int axis, const tensor_ref& in, const tensor_ref& out)
        : group(*static_cast<member*>(self)->groups[std::size_t(axis)]),
          failed(static_cast<member*>(self)->owner->failed_),
          coordinate(static_cast<member*>(self)->of.groups[std::size_t(axis)].coordinate),
          size(int(group.in.size())) {
      group.in[std::size_t(coordinate)] = in.data;
      group.out[std::size_t(coordinate)] = out.data;
      wait();
    }
    void wait() { group.at.arrive_and_wait(failed); }
    tensor_ref operand(int r, const tensor_type& t) const {
      return {const_cast<std::byte*>(group.in[std::size_t(r)]), t};
    }
  };

  /// Each rank sums up a part of the elements, and takes the other parts from the others.
  static void all_reduce(void* self, int axis, const tensor_ref& in, const tensor_ref& out) {
    turn t(self, axis, in, out);
    const auto size = std::int64_t(size_of(in.type.element));
    const auto first = [&](int r) { return in.type.size() * r / t.size; };
    const auto count = [&](int r) { return first(r + 1) - first(r); };
    const int own = t.coordinate;
    detail::sum_elements(t.group.in, in.type, first(own), count(own), out.data + first(own) * size);
    t.wait();
    for (int r = 0; r < t.size; ++r)
      if (r != own && count(r))
        std::memcpy(out.data + first(r) * size, t.group.out[std::size_t(r)] + first(r) * size,
                    std::size_t(count(r) * size));
    t.wait();
  }
  static void all_gather(void* self, int axis, int dimension, const tensor_ref& in,
                         const tensor_ref& out) {
    turn t(self, axis, in, out);
    const int extent = out.type[dimension];
    for (int r = 0; r < t.size; ++r) {
      const tensor_type type = detail::type_of_part(in.type, dimension, extent, t.size, r);
      const auto first = cella::detail::place_along(dimension, first_of_part(extent, t.size, r));
      cella::detail::copy_box(t.operand(r, type), {}, out, first, type.shape);
    }
    t.wait();
  }
  static void reduce_scatter(void* self, int axis, int dimension, const tensor_ref& in,
                             const tensor_ref& out) {
    turn t(self, axis, in, out);
    detail::sum_part(t.group.in, in.type, dimension, t.coordinate, out);
    t.wait();
  }
  static void all_to_all(void* self, int axis, int joined, int cut, const tensor_ref& in,
                         const tensor_ref& out) {
    turn t(self, axis, in, out);
    for (int r = 0; r < t.size; ++r) {
      const tensor_type type = detail::type_of_part(in.type, joined, out.type[joined], t.size, r);
      detail::exchange_part(t.operand(r, type), r, t.size, cut, t.coordinate, out, joined);
    }
    t.wait();
  }

  device_mesh mesh_;
  std::vector<std::unique_ptr<detail::thread_group>> groups_;
  std::deque<member> ranks_;
  std::atomic<int> failed_{-1};
};

}  // namespace cella::parallel
