// Ranks as threads of one process, which exchange through the memory that they share.
#pragma once

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

/// What the threads of a group show each other.
struct thread_group {
  explicit thread_group(int size) : at(size), in(std::size_t(size)), out(std::size_t(size)) {
    for (int i = 0; i < size * size; ++i) mail.emplace_back();
  }
  std::deque<mailbox> mail;  ///< from each rank to each
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
      one.of.finish_all_reduce = &all_reduce;
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
      group.at.arrive_and_wait(own.owner->watch_, own.rank);
    }
    /// Nobody needs what the others have shown any more.
    void end() { group.at.arrive_and_leave(); }
  };

  static void all_reduce(void* self, int axis, const tensor_ref& in, const tensor_ref& out) {
    turn t(self, axis, in, out);
    detail::sum_share(t.group.in, in.type, {t.size, t.coordinate}, t.group.out);
    t.end();
  }
  /// Cores are busy until a sum is asked for: nobody would make it meanwhile.
  static void start_all_reduce(void*, int, const tensor_ref&) {}
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
    detail::join_parts(t.group.in, in.type, dimension, out);
    t.end();
  }
  static void reduce_scatter(void* self, int axis, int dimension, const tensor_ref& in,
                             const tensor_ref& out) {
    turn t(self, axis, in, out);
    detail::sum_part(t.group.in, in.type, dimension, t.coordinate, out);
    t.end();
  }
  static void all_to_all(void* self, int axis, int joined, int cut, const tensor_ref& in,
                         const tensor_ref& out) {
    turn t(self, axis, in, out);
    detail::exchange_parts(t.group.in, in.type, cut, t.coordinate, out, joined);
    t.end();
  }

  device_mesh mesh_;
  std::vector<std::unique_ptr<detail::thread_group>> groups_;
  std::deque<member> ranks_;
  detail::thread_watch watch_;
};

}  // namespace cella::parallel
