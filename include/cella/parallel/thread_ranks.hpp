// Ranks as threads of one process, which exchange through the memory that they share.
#pragma once

#include <atomic>
#include <cella/backend/host/buffer.hpp>
#include <cella/graph/error.hpp>
#include <cella/parallel/exchange.hpp>
#include <cella/parallel/mailbox.hpp>
#include <cella/parallel/mesh.hpp>
#include <cella/parallel/thread_watch.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace cella::parallel {

namespace detail {

/// A sum that ranks have started: how many know its operands, have their part of it, have it all.
struct sum_under_way {
  explicit sum_under_way(int size) : in(std::size_t(size)), out(std::size_t(size)) {}
  std::atomic<std::int64_t> started{0}, summed{0}, taken{0};
  std::vector<const std::byte*> in;
  std::vector<std::byte*> out;
};

/// What the threads of a group show each other.
struct thread_group {
  explicit thread_group(int size) : at(size), in(std::size_t(size)), out(std::size_t(size)) {
    for (int i = 0; i < most_under_way; ++i) sums.emplace_back(size);
    for (int i = 0; i < size * size; ++i) mail.emplace_back();
  }
  static constexpr int most_under_way = 64;
  std::deque<sum_under_way> sums;  ///< taken in turn
  std::deque<mailbox> mail;        ///< from each rank to each
  meeting at;
  std::vector<const std::byte*> in;
  std::vector<std::byte*> out;
};

}  // namespace detail

/// The groups of a mesh whose ranks are threads. Collective operations wait for each other and
/// copy: no memory is taken, no message made. What is sent lies in a mailbox until it is received.
class thread_ranks {
 public:
  /// So many seconds a rank waits for the others, before it names the one that does not come.
  explicit thread_ranks(const device_mesh& m, double timeout_seconds = 60)
      : mesh_(m), watch_(m.ranks(), timeout_seconds) {
    for (int r = 0; r < m.ranks(); ++r) {
      member& one = ranks_.emplace_back();
      one.owner = this;
      one.rank = r;
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
      one.of.start_all_reduce = &start_all_reduce;
      one.of.finish_all_reduce = &finish_all_reduce;
      one.of.send = &send;
      one.of.receive = &receive;
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
  /// wait for the one that failed, and the object is not used again. A thread cannot be ended:
  /// where one has not come to a collective operation in time, and not ended in as much time again,
  /// the process ends with a sentence.
  template <class F>
  void run(F f) {
    std::exception_ptr first;
    std::mutex lock;
    std::condition_variable ended;
    int left = mesh_.ranks();
    std::vector<std::thread> threads;
    for (int r = 0; r < mesh_.ranks(); ++r) {
      threads.emplace_back([&, r] {
        std::exception_ptr thrown;
        try {
          f(r, of(r));
        } catch (...) { thrown = std::current_exception(); }
        const std::scoped_lock guard(lock);
        if (thrown && !first) first = thrown;
        if (thrown) watch_.failed(r);
        --left;
        ended.notify_all();
      });
    }
    {
      std::unique_lock guard(lock);
      ended.wait(guard, [&] { return left == 0 || first; });
      const auto longest = std::chrono::duration<double>(watch_.seconds);
      if (!ended.wait_for(guard, longest, [&] { return left == 0; })) {
        try {
          std::rethrow_exception(first);
        } catch (const std::exception& e) { std::fprintf(stderr, "%s\n", e.what()); }
        std::_Exit(1);
      }
    }
    for (std::thread& t : threads) t.join();
    if (first) std::rethrow_exception(first);
  }

 private:
  struct member {
    communicator of;
    thread_ranks* owner{};
    int rank{};
    std::array<detail::thread_group*, max_mesh_axes> groups{};
    std::array<std::int64_t, max_mesh_axes> started{}, finished{};  ///< sums
  };

  struct turn {
    detail::thread_group& group;
    member& own;
    int coordinate;
    int size;

    turn(void* self, int axis, const tensor_ref& in, const tensor_ref& out)
        : group(*static_cast<member*>(self)->groups[std::size_t(axis)]),
          own(*static_cast<member*>(self)),
          coordinate(own.of.groups[std::size_t(axis)].coordinate),
          size(int(group.in.size())) {
      group.in[std::size_t(coordinate)] = in.data;
      group.out[std::size_t(coordinate)] = out.data;
      wait();
    }
    void wait() { group.at.arrive_and_wait(own.owner->watch_, own.rank); }
    tensor_ref operand(int r, const tensor_type& t) const {
      return {const_cast<std::byte*>(group.in[std::size_t(r)]), t};
    }
  };

  static void all_reduce(void* self, int axis, const tensor_ref& in, const tensor_ref& out) {
    turn t(self, axis, in, out);
    const communicator::group own{t.size, t.coordinate};
    sum_own_elements(t.group.in, in.type, own, out);
    t.wait();
    take_other_elements(t.group.out, in.type, own, out);
    t.wait();
  }
  /// Shows the operand, and goes on: the others' parts are added up when the sum is asked for.
  static void start_all_reduce(void* self, int axis, const tensor_ref& in) {
    member& own = *static_cast<member*>(self);
    detail::thread_group& group = *own.groups[std::size_t(axis)];
    const std::int64_t k = own.started[std::size_t(axis)]++;
    if (k - own.finished[std::size_t(axis)] >= group.most_under_way)
      throw error(text() << "all_reduce: at most " << group.most_under_way
                         << " sums are under way; let buckets be larger");
    detail::sum_under_way& s = group.sums[std::size_t(k % group.most_under_way)];
    s.in[std::size_t(own.of.groups[std::size_t(axis)].coordinate)] = in.data;
    s.started.fetch_add(1, std::memory_order_acq_rel);
  }
  static void finish_all_reduce(void* self, int axis, const tensor_ref& in, const tensor_ref& out) {
    member& own = *static_cast<member*>(self);
    detail::thread_group& group = *own.groups[std::size_t(axis)];
    const communicator::group place = own.of.groups[std::size_t(axis)];
    const std::int64_t k = own.finished[std::size_t(axis)]++;
    detail::sum_under_way& s = group.sums[std::size_t(k % group.most_under_way)];
    const std::int64_t all = place.size * (k / group.most_under_way + 1);
    const auto wait_for = [&](const std::atomic<std::int64_t>& count) {
      own.owner->watch_.wait(own.rank,
                             [&] { return count.load(std::memory_order_acquire) >= all; });
    };
    wait_for(s.started);
    s.out[std::size_t(place.coordinate)] = out.data;
    sum_own_elements(s.in, in.type, place, out);
    s.summed.fetch_add(1, std::memory_order_acq_rel);
    wait_for(s.summed);
    take_other_elements(s.out, in.type, place, out);
    s.taken.fetch_add(1, std::memory_order_acq_rel);
    wait_for(s.taken);
  }
  static std::int64_t first_element(const tensor_type& t, int r, int ranks) {
    return t.size() * r / ranks;
  }
  /// Each rank sums up a part of the elements, and takes the other parts from the others.
  static void sum_own_elements(std::span<const std::byte* const> in, const tensor_type& t,
                               const communicator::group& own, const tensor_ref& out) {
    const std::int64_t first = first_element(t, own.coordinate, own.size);
    detail::sum_elements(in, t, first, first_element(t, own.coordinate + 1, own.size) - first,
                         out.data + first * std::int64_t(size_of(t.element)));
  }
  static void take_other_elements(std::span<std::byte* const> from, const tensor_type& t,
                                  const communicator::group& own, const tensor_ref& out) {
    const auto size = std::int64_t(size_of(t.element));
    for (int r = 0; r < own.size; ++r) {
      const std::int64_t first = first_element(t, r, own.size) * size;
      const std::int64_t bytes = first_element(t, r + 1, own.size) * size - first;
      if (r != own.coordinate && bytes)
        std::memcpy(out.data + first, from[std::size_t(r)] + first, std::size_t(bytes));
    }
  }
  static detail::mailbox& mail(const member& own, int axis, int from, int to) {
    return own.groups[std::size_t(axis)]
        ->mail[std::size_t(from * own.of.groups[std::size_t(axis)].size + to)];
  }
  static void send(void* self, int axis, int to, int tag, const tensor_ref& in) {
    const member& own = *static_cast<member*>(self);
    mail(own, axis, own.of.groups[std::size_t(axis)].coordinate, to).put(tag, in);
  }
  static void receive(void* self, int axis, int from, int tag, const tensor_ref& out) {
    const member& own = *static_cast<member*>(self);
    detail::mailbox& box = mail(own, axis, from, own.of.groups[std::size_t(axis)].coordinate);
    std::int64_t seen = -1;
    own.owner->watch_.wait(own.rank, [&] { return box.take(tag, out, seen); });
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
  detail::thread_watch watch_;
};

}  // namespace cella::parallel
