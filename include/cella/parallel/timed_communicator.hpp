// How long a rank spends in collective operations and messages, waiting for others included.
#pragma once

#include <cella/parallel/communicator.hpp>
#include <chrono>

namespace cella::parallel {

/// Passes everything on to another communicator, which outlives it, and adds up the time.
class timed_communicator {
 public:
  explicit timed_communicator(const communicator& to) : to_(to), own_(to) {
    own_.self = this;
    own_.all_reduce = [](void* self, int axis, const tensor_ref& in, const tensor_ref& out) {
      timed(self, [&](const communicator& c) { c.all_reduce(c.self, axis, in, out); });
    };
    own_.start_all_reduce = [](void* self, int axis, const tensor_ref& in) {
      timed(self, [&](const communicator& c) { c.start_all_reduce(c.self, axis, in); });
    };
    own_.finish_all_reduce = [](void* self, int axis, const tensor_ref& in, const tensor_ref& out) {
      timed(self, [&](const communicator& c) { c.finish_all_reduce(c.self, axis, in, out); });
    };
    own_.send = [](void* self, int axis, int place, int tag, const tensor_ref& in) {
      timed(self, [&](const communicator& c) { c.send(c.self, axis, place, tag, in); });
    };
    own_.receive = [](void* self, int axis, int from, int tag, const tensor_ref& out) {
      timed(self, [&](const communicator& c) { c.receive(c.self, axis, from, tag, out); });
    };
    own_.all_gather = [](void* self, int axis, int dimension, const tensor_ref& in,
                         const tensor_ref& out) {
      timed(self, [&](const communicator& c) { c.all_gather(c.self, axis, dimension, in, out); });
    };
    own_.reduce_scatter = [](void* self, int axis, int dimension, const tensor_ref& in,
                             const tensor_ref& out) {
      timed(self,
            [&](const communicator& c) { c.reduce_scatter(c.self, axis, dimension, in, out); });
    };
    own_.all_to_all = [](void* self, int axis, int joined, int cut, const tensor_ref& in,
                         const tensor_ref& out) {
      timed(self, [&](const communicator& c) { c.all_to_all(c.self, axis, joined, cut, in, out); });
    };
  }
  timed_communicator(const timed_communicator&) = delete;
  timed_communicator& operator=(const timed_communicator&) = delete;

  const communicator& get() const { return own_; }
  double seconds() const { return seconds_; }

 private:
  template <class F>
  static void timed(void* self, F f) {
    auto& own = *static_cast<timed_communicator*>(self);
    const auto begin = std::chrono::steady_clock::now();
    f(own.to_);
    own.seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  const communicator& to_;
  communicator own_;
  double seconds_{};
};

}  // namespace cella::parallel
