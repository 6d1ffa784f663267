// Control nodes of plans that are made at run time.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/run/loaded_body.hpp>
#include <cella/plan/plan.hpp>

namespace cella::cpu {

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
