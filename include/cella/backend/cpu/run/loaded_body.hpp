// The regions of control nodes in plans that are made at run time: their plans, and frames that run
// them.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/run/control_flow.hpp>
#include <deque>
#include <memory>

namespace cella::cpu {

template <class T>
class loaded_calls;

/// A region that control nodes run in one way, and its plan, once that is made.
template <class T>
struct loaded_body {
  int region{};
  region_use use{};
  int inputs{};
  outputs_of_region outputs;
  std::unique_ptr<const loaded_calls<T>> calls{};
};

/// The regions of all control nodes of a graph. One that several nodes run is planned once, and so
/// is one that runs itself.
template <class T>
class loaded_bodies {
 public:
  const loaded_body<T>& get(const graph& g, int region, region_use use) {
    for (const loaded_body<T>& b : all_) {
      if (b.region == region && b.use == use) return b;
    }
    const cella::region& r = g.regions[std::size_t(region)];
    all_.push_back({region, use, int(r.inputs.size()), {r.inputs, r.outputs, use.carries}});
    return all_.back();
  }
  /// Plans all, and those that are met on the way.
  void plan(const graph& g, bool watched) {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      loaded_body<T>& b = all_[i];
      b.calls = std::make_unique<const loaded_calls<T>>(
          g, region_graph(g, b.region, b.outputs.fates), options_of_region(dtype_of<T>, b.use),
          *this, watched);
    }
  }

 private:
  std::deque<loaded_body<T>> all_;
};

/// A frame of a region: bind its inputs and outputs, prepare it, then run it any number of times.
template <class T>
class loaded_frame {
 public:
  loaded_frame(const loaded_body<T>& of, const memory& outer)
      : body_(of), frames_(outer.context->frames), before_(frames_.top()) {
    const int threads = outer.context->threads ? outer.context->threads->capacity() : 1;
    std::byte* const at = frames_.take(bytes(of, threads));
    spaces_ = reinterpret_cast<std::byte**>(at);
    std::fill_n(spaces_, space_count(of), nullptr);
    spaces_[arena_space] = at + space_bytes(of);
    spaces_[constant_space] = outer.base[constant_space];
    memory_ = {spaces_, outer.context};
  }
  loaded_frame(const loaded_frame&) = delete;
  loaded_frame& operator=(const loaded_frame&) = delete;
  ~loaded_frame() { frames_.release(before_); }

  /// Of a frame, which lie one behind the other: addresses, the arena, and scratch of each thread.
  static std::int64_t bytes(const loaded_body<T>& of, int threads) {
    return space_bytes(of) + align_up(of.calls->plan().arena_bytes) +
           of.calls->scratch_bytes() * threads;
  }

  void input(int k, std::byte* at) { spaces_[first_argument + k] = at; }
  /// Output `k` is written to `at`, if it is a result.
  void output(int k, std::byte* at) {
    if (body_.outputs.fates[std::size_t(k)] != region_result) return;
    spaces_[first_argument + body_.inputs + body_.outputs.places[std::size_t(k)]] = at;
  }
  int record_of(int k) const { return body_.outputs.records[std::size_t(k)]; }

  /// What depends on constants only; they are bound.
  void prepare() { body_.calls->prepare(memory_, scratch()); }
  void run() { body_.calls->run_all(memory_, scratch()); }

 private:
  static int space_count(const loaded_body<T>& of) {
    return first_argument + of.inputs + int(of.outputs.fates.size());
  }
  static std::int64_t space_bytes(const loaded_body<T>& of) {
    return align_up(space_count(of) * std::int64_t{sizeof(std::byte*)});
  }
  std::byte* scratch() { return spaces_[arena_space] + align_up(body_.calls->plan().arena_bytes); }

  const loaded_body<T>& body_;
  frame_stack& frames_;
  frame_stack::mark before_;
  std::byte** spaces_{};
  memory memory_;
};

}  // namespace cella::cpu
