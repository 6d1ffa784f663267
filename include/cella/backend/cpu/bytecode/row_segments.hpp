// Loop nests that are known at run time: the way from row to row, and blocks that are made of rows.
#pragma once

#include <cella/backend/cpu/bytecode/block_runner.hpp>
#include <cella/backend/cpu/loops/loop_nest.hpp>
#include <cella/plan/step.hpp>

namespace cella::cpu {

/// The nest of a step whose reads are counted at run time.
inline loop_nest<16> nest_of(const plan_step& s) {
  loop_nest<16> n{s.loops, s.loop, {}, s.folded};
  for (std::size_t k = 0; k < std::size_t(s.read_count); ++k) n.stride[k] = s.reads[k].strides;
  return n;
}

/// A step whose loops run over vectors of L elements, such as images in blocks have, as one whose
/// innermost loop runs over elements. Where a value is one number for a vector, or one vector for
/// all turns, its strides still say so: see walk_of.
inline void in_elements(plan_step& s, int L) {
  const bool nest = s.kind == step_kind::elementwise || s.kind == step_kind::reduce;
  if (!nest || s.arrangement == layout::plain) return;
  s.loop[std::size_t(s.loops - 1)] *= L;
  for (int k = 0; k < s.read_count; ++k) {
    operand_read& r = s.reads[std::size_t(k)];
    if (r.how != access::moving) continue;
    for (std::int64_t& stride : r.strides) stride *= L;
  }
}

namespace detail {

/// Turns of the loops but the innermost one, and where each read begins there.
class nest_walk {
 public:
  /// `L`: elements of a vector, by which the innermost loop steps if values are not plain.
  nest_walk(const plan_step& s, int L) : s_(s), turn_(s.arrangement == layout::plain ? 1 : L) {}

  /// Loop d runs inside those that were added before.
  void add(int d) { loops_[std::size_t(count_++)] = d; }
  std::int64_t turns() const {
    std::int64_t n = 1;
    for (int i = 0; i < count_; ++i) n *= s_.loop[std::size_t(loops_[std::size_t(i)])];
    return n;
  }
  void go_to(std::int64_t turn) {
    index_ = {};
    for (int i = count_; i-- > 0 && turn != 0;) {
      const auto d = std::size_t(loops_[std::size_t(i)]);
      index_[d] = turn % s_.loop[d];
      turn /= s_.loop[d];
    }
  }
  /// Goes on by `turns`, of which the innermost loop has as many left.
  void next(std::int64_t turns = 1) {
    for (int i = count_; i-- > 0; turns = 1) {
      const auto d = std::size_t(loops_[std::size_t(i)]);
      if ((index_[d] += turns) < s_.loop[d]) return;
      index_[d] = 0;
    }
  }
  /// Turns that the innermost loop has left, with this one.
  std::int64_t left() const {
    if (count_ == 0) return 1;
    const auto d = std::size_t(loops_[std::size_t(count_ - 1)]);
    return s_.loop[d] - index_[d];
  }
  /// Whether the outermost loop that was added is in its last turn.
  bool outermost_ends() const {
    const auto d = std::size_t(loops_[0]);
    return index_[d] + 1 == s_.loop[d];
  }
  /// Adds where something begins that moves by these strides.
  std::int64_t place(const std::array<std::int64_t, max_loops>& strides) const {
    // Not a loop: compilers make vectors of it, which wait for the numbers that were just stored.
    static_assert(max_loops == 5, "the outer loops have a case each");
    std::int64_t at = 0;
    switch (s_.loops) {
      case 5:
        at += index_[3] * strides[3];
        [[fallthrough]];
      case 4:
        at += index_[2] * strides[2];
        [[fallthrough]];
      case 3:
        at += index_[1] * strides[1];
        [[fallthrough]];
      case 2:
        at += index_[0] * strides[0];
        break;
      default:
        break;
    }
    return at;
  }
  /// By how much that is more in the innermost loop's next turn.
  std::int64_t apart(const std::array<std::int64_t, max_loops>& strides) const {
    return count_ == 0 ? 0 : strides[std::size_t(loops_[std::size_t(count_ - 1)])];
  }
  /// What element i of the innermost loop adds to that.
  std::int64_t along(const std::array<std::int64_t, max_loops>& strides, std::int64_t i) const {
    return i == 0 ? 0 : i / turn_ * strides[std::size_t(s_.loops - 1)];
  }

 private:
  const plan_step& s_;
  int turn_;
  int count_ = 0;
  std::array<int, max_loops> loops_{};
  std::array<std::int64_t, max_loops> index_{};
};

/// Segments of a block that are pieces of rows of a nest, and where their reads begin.
template <class T>
struct row_segments {
  using segment = typename block_runner<T>::segment;
  static constexpr int most = 64;
  std::array<segment, most> all;
  std::array<std::array<std::int64_t, 16>, most> at;
  int count = 0, vectors = 0;

  bool has_room(int elements, int block) const {
    constexpr int L = lanes<T>;
    return count == 0 || (count < most && vectors * L + (elements + L - 1) / L * L <= block);
  }
  void clear() { count = vectors = 0; }
  span<const segment> list() const { return {all.data(), std::size_t(count)}; }
};

}  // namespace detail

}  // namespace cella::cpu
