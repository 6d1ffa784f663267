// Control nodes of plans that are made at run time: the plans of their regions, and frames that run
// them.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/run/control_flow.hpp>
#include <cella/plan/plan.hpp>
#include <deque>
#include <memory>

namespace cella::cpu {

template <class T>
class loaded_calls;
template <class T>
class loaded_control;

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

/// A control node of a plan. See control_flow.hpp.
template <class T>
class loaded_control {
 public:
  loaded_control(const graph& g, const growing_plan& plan, const plan_step& s,
                 loaded_bodies<T>& all)
      : g_(g), plan_(plan), s_(s) {
    for (int k = 0; k < 2; ++k) {
      // A custom derivative is not run; a function has no second region.
      const int region = n().regions[std::size_t(k)];
      if (region >= 0 && !(k == 1 && is<custom_op>(n())))
        bodies_[std::size_t(k)] = &all.get(g, region, use_of_region(n(), k));
    }
    for (int k = 0; is<pack_op>(n()) && k < operands(); ++k)
      fields_.push_back(field_of_record(g.type(g.operand(s.anchor, k)), n().type.rank()));
  }

  int operands() const { return n().operand_count; }
  int results() const { return n().result_count; }
  std::byte* operand(const memory& m, int k) const {
    return m.at<std::byte>(plan_.links[std::size_t(s_.first_link + k)]);
  }
  std::byte* result(const memory& m, int k) const { return operand(m, operands() + k); }
  tensor_type operand_type(int k) const { return stored(g_.type(g_.operand(s_.anchor, k))); }
  tensor_type result_type(int k) const { return stored(g_.result_type(s_.anchor, k)); }
  template <class Options>
  Options options() const {
    return n().attributes.template as<Options>();
  }
  template <int Region>
  loaded_frame<T> frame(const memory& m) const {
    return {*bodies_[Region], m};
  }

  void run(const memory& m) const {
    if (is<cond_op>(n())) {
      if (*reinterpret_cast<const bool*>(operand(m, 0)))
        run_region_once<0, 1>(*this, m);
      else
        run_region_once<1, 1>(*this, m);
    } else if (is<scan_op>(n())) {
      run_scan(*this, m);
    } else if (is<while_op>(n())) {
      run_while(*this, m);
    } else if (is<pack_op>(n())) {
      run_pack(*this, m, fields_);
    } else if (is<unpack_op>(n())) {
      run_unpack(*this, m);
    } else {
      run_region_once<0, 0>(*this, m);
    }
  }

  /// Its regions; null where it has none.
  const std::array<const loaded_body<T>*, 2>& bodies() const { return bodies_; }
  /// Whether both regions have frames at the same time.
  bool is_loop() const { return is<while_op>(n()); }

 private:
  const node& n() const { return g_.nodes[std::size_t(s_.anchor)]; }

  const graph& g_;
  const growing_plan& plan_;
  const plan_step& s_;
  std::array<const loaded_body<T>*, 2> bodies_{};
  list<tensor_type> fields_;  ///< what a pack holds
};

/// Bytes of the frames that are alive at once while `calls` run. One level of a recursion counts,
/// since only the data know how many there are; `round` are the bodies round it.
template <class T>
std::int64_t frame_bytes(const loaded_calls<T>& calls, int threads,
                         list<const loaded_body<T>*> round = {}) {
  std::int64_t most = 0;
  for (const loaded_control<T>& c : calls.control_steps()) {
    std::array<std::int64_t, 2> bytes{};
    for (std::size_t k = 0; k < 2; ++k) {
      const loaded_body<T>* const b = c.bodies()[k];
      if (!b || std::find(round.begin(), round.end(), b) != round.end()) continue;
      round.push_back(b);
      bytes[k] =
          align_up(loaded_frame<T>::bytes(*b, threads)) + frame_bytes(*b->calls, threads, round);
      round.pop_back();
    }
    most = std::max(most, c.is_loop() ? bytes[0] + bytes[1] : std::max(bytes[0], bytes[1]));
  }
  return most;
}

}  // namespace cella::cpu
