// The buffers of a plan while it grows: they have numbers until all lifetimes are known, and then
// addresses in one arena.
#pragma once

#include <cella/plan/memory.hpp>
#include <cella/plan/plan.hpp>

namespace cella {

class arena_buffers {
 public:
  struct buffer {
    std::int64_t bytes{};
    bool persistent{};  ///< keeps its content from call to call
    bool constant{};    ///< made when the program is prepared
    bool pinned{};      ///< a result: read after the last step
    int first = -1;
    int last = -1;
    int whole = -1;         ///< the buffer that this one is a part of, or -1
    std::int64_t offset{};  ///< in that buffer
  };

  constexpr buffer_ref fresh(std::int64_t bytes, bool persistent = false) {
    all_.push_back({bytes, persistent});
    return {pending, std::int64_t(all_.size()) - 1};
  }
  /// What lies `offset` bytes behind `at`.
  constexpr buffer_ref behind(buffer_ref at, std::int64_t offset) {
    if (!holds(at)) return {at.space, at.offset + offset};
    const buffer& b = all_[std::size_t(at.offset)];
    buffer part;
    part.whole = b.whole < 0 ? int(at.offset) : b.whole;
    part.offset = b.offset + offset;
    all_.push_back(part);
    return {pending, std::int64_t(all_.size()) - 1};
  }

  /// Whether `r` is one of these buffers.
  constexpr bool holds(buffer_ref r) const { return r.space == pending; }
  constexpr const buffer& operator[](buffer_ref r) const { return all_[std::size_t(r.offset)]; }
  /// The buffer that `r` is, or is a part of.
  constexpr const buffer& whole(buffer_ref r) const { return all_[place_of(r.offset).index]; }
  constexpr buffer& whole(buffer_ref r) { return all_[place_of(r.offset).index]; }

  /// Gives `to`, which step `index` is the first to use, the place of `from`, which it is the last
  /// to use and which has as many bytes; else all stays as it is.
  constexpr void take_place(int index, buffer_ref from, buffer_ref to) {
    if (!holds(from) || !holds(to)) return;
    const place old = place_of(from.offset);
    buffer &x = all_[old.index], &y = all_[std::size_t(to.offset)];
    const bool is_free = x.last == index && !x.pinned && !x.persistent && !x.constant;
    const bool is_new = y.first == index && y.whole < 0 && !y.persistent && !y.constant;
    if (!is_free || !is_new || &x == &y || old.offset != 0 || x.bytes != y.bytes) return;
    x.last = y.last;
    x.pinned = y.pinned;
    y.whole = int(old.index);
  }

  /// Step `index` of the plan uses what `s` names.
  constexpr void use(int index, const plan_step& s, span<const buffer_ref> links) {
    auto touch = [&](const buffer_ref& r, bool when_prepared) {
      if (!holds(r)) return;
      buffer& b = whole(r);
      if (b.first < 0) b.first = index;
      b.last = index;
      // What only preparations read need not be kept behind them.
      b.persistent |= b.constant && !when_prepared;
    };
    for (int k = 0; s.constant && k < s.output_count; ++k)
      all_[std::size_t(s.outputs[std::size_t(k)].at.offset)].constant = true;
    for (std::size_t k = 0; k < s.in.size(); ++k)
      touch(s.in[k], s.constant || s.prepared_operand == int(k));
    touch(s.scratch, s.constant);
    touch(s.pool_argmax, s.constant);
    for (int k = 0; k < s.output_count; ++k) touch(s.outputs[std::size_t(k)].at, s.constant);
    for (int k = 0; k < s.read_count; ++k) touch(s.reads[std::size_t(k)].at, s.constant);
    for (int k = 0; k < s.link_count; ++k) touch(links[std::size_t(s.first_link + k)], s.constant);
  }
  /// A result is read after the last step.
  constexpr void pin(buffer_ref r) {
    if (!holds(r)) return;
    buffer& b = whole(r);
    b.pinned = true;
    b.persistent |= b.constant;
  }

  /// Gives all that `p` names its address in the arena.
  constexpr void settle(growing_plan& p) const {
    list<lifetime> lives;
    const int steps = int(p.steps.size());
    for (const buffer& b : all_) {
      const int first = b.persistent || b.first < 0 ? 0 : b.first;
      const int last = b.persistent || b.pinned ? steps : b.last < 0 ? 0 : b.last;
      lives.push_back({b.whole < 0 ? b.bytes : 0, first, last, -1});
      p.arena_bytes_without_reuse += align_up(b.bytes);
    }
    p.arena_bytes = plan_memory(lives);
    p.live_bytes = largest_live_set(lives);
    auto settle = [&](buffer_ref& r) {
      if (!holds(r)) return;
      const place at = place_of(r.offset);
      r = {arena_space, lives[at.index].offset + at.offset};
    };
    for (plan_step& s : p.steps) {
      for (auto& r : s.in) settle(r);
      settle(s.scratch);
      settle(s.pool_argmax);
      for (int k = 0; k < s.output_count; ++k) settle(s.outputs[std::size_t(k)].at);
      for (int k = 0; k < s.read_count; ++k) settle(s.reads[std::size_t(k)].at);
    }
    for (plan_value& r : p.results) settle(r.at);
    for (buffer_ref& r : p.links) settle(r);
  }

 private:
  static constexpr std::int32_t pending = -2;

  /// A buffer that is no part of another, and how many bytes behind its begin.
  struct place {
    std::size_t index{};
    std::int64_t offset{};
  };
  constexpr place place_of(std::int64_t number) const {
    place at{std::size_t(number)};
    for (; all_[at.index].whole >= 0; at.index = std::size_t(all_[at.index].whole))
      at.offset += all_[at.index].offset;
    return at;
  }

  list<buffer> all_;
};

}  // namespace cella
