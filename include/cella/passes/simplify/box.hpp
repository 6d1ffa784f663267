// Parts of tensors and of loops: boxes of elements, and how the box of one tensor tells that of
// another in the same operation.
#pragma once

#include <algorithm>
#include <cella/graph/iteration_space.hpp>

namespace cella {

/// Elements [first, last) along each axis; or none at all.
struct box {
  bool empty = true;
  int rank{};
  std::array<std::int32_t, max_rank> first{}, last{};

  static constexpr box whole(const shape& s) {
    box w;
    w.empty = s.size() == 0;
    w.rank = s.rank;
    for (int d = 0; d < s.rank; ++d) w.last[std::size_t(d)] = s[d];
    return w;
  }
  constexpr shape extents() const {
    shape s;
    for (int d = 0; d < rank; ++d) s.push_back(last[std::size_t(d)] - first[std::size_t(d)]);
    return s;
  }
  constexpr std::int64_t size() const { return empty ? 0 : extents().size(); }
  /// Gives one axis another range.
  constexpr void set(int axis, std::int32_t from, std::int32_t to) {
    first[std::size_t(axis)] = from;
    last[std::size_t(axis)] = to;
    empty = empty || to <= from;
  }
  constexpr box moved(const std::array<std::int32_t, max_rank>& by, int sign) const {
    box w = *this;
    for (int d = 0; d < rank; ++d)
      w.set(d, first[std::size_t(d)] + sign * by[std::size_t(d)],
            last[std::size_t(d)] + sign * by[std::size_t(d)]);
    return w;
  }
  /// With one more leading axis of so many elements, or without the leading axis.
  constexpr box with_leading(int extent) const {
    box w;
    w.empty = empty;
    w.rank = rank + 1;
    w.set(0, 0, extent);
    for (int d = 0; d < rank; ++d) w.set(d + 1, first[std::size_t(d)], last[std::size_t(d)]);
    return w;
  }
  constexpr box without_leading() const {
    box w;
    w.empty = empty;
    w.rank = rank - 1;
    for (int d = 1; d < rank; ++d) w.set(d - 1, first[std::size_t(d)], last[std::size_t(d)]);
    return w;
  }

  friend constexpr box common(const box& a, const box& b) {
    box w = a;
    w.empty = a.empty || b.empty;
    for (int d = 0; d < a.rank && !w.empty; ++d) {
      const auto i = std::size_t(d);
      w.set(d, std::max(a.first[i], b.first[i]), std::min(a.last[i], b.last[i]));
    }
    return w;
  }
  /// The smallest box round both.
  friend constexpr box hull(const box& a, const box& b) {
    if (a.empty) return b;
    if (b.empty) return a;
    box w = a;
    for (int d = 0; d < a.rank; ++d) {
      const auto i = std::size_t(d);
      w.set(d, std::min(a.first[i], b.first[i]), std::max(a.last[i], b.last[i]));
    }
    return w;
  }
  friend constexpr bool operator==(const box& a, const box& b) {
    return a.empty == b.empty && (a.empty || (a.first == b.first && a.last == b.last));
  }
};

/// A part of an operation's loops: a range of places for each factor. Begins as all of them.
class loop_part {
 public:
  explicit constexpr loop_part(const iteration_space& s) : space_(s) {
    for (const iteration_space::factor& f : s.factors) ranges_.push_back({0, f.extent});
  }

  /// Drops the points that lie outside of a box of tensor `t`.
  constexpr void keep_within(int t, const box& w) { walk_into(t, w, false); }
  /// Exactly the points of a box of tensor `t`, along the factors that it walks.
  constexpr void set_to(int t, const box& w) { walk_into(t, w, true); }

  /// The smallest box round what lies in tensor `t`, of shape `s`, at these points.
  constexpr box of(int t, const shape& s) const {
    box w = box::whole(s);
    for (const range& r : ranges_) w.empty = w.empty || r.last <= r.first;
    if (w.empty) return w;
    for (int d = 0; d < s.rank; ++d) {
      std::int64_t low = 0, high = 0;
      bool walked = false;
      for (const iteration_space::walk& x : space_.walks) {
        if (x.tensor != t || x.axis != d) continue;
        const bool moves = x.factor != iteration_space::none;
        const range r = moves ? ranges_[std::size_t(x.factor)] : range{1, 2};
        low += x.step * (x.step > 0 ? r.first : r.last - 1);
        high += x.step * (x.step > 0 ? r.last - 1 : r.first);
        walked |= moves;
      }
      if (walked)
        w.set(d, std::int32_t(std::max<std::int64_t>(low, 0)),
              std::int32_t(std::min<std::int64_t>(high + 1, s[d])));
    }
    return w;
  }

 private:
  struct range {
    std::int64_t first{}, last{};
  };
  /// Rounded towards minus infinity.
  static constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
  }
  /// Positions that several factors share say nothing of each.
  constexpr void walk_into(int t, const box& w, bool exactly) {
    for (int d = 0; d < w.rank; ++d) {
      const iteration_space::walk* only = nullptr;
      std::int64_t offset = 0;
      int count = 0;
      for (const iteration_space::walk& x : space_.walks) {
        if (x.tensor != t || x.axis != d) continue;
        if (x.factor == iteration_space::none)
          offset += x.step;
        else
          only = &x, ++count;
      }
      if (count != 1) continue;
      const std::int64_t a = w.first[std::size_t(d)] - offset;
      const std::int64_t b = w.last[std::size_t(d)] - 1 - offset;
      const std::int64_t step = only->step;
      // The first place at or behind one end of the box, and the last before the other.
      const range in{-floor_div(-(step > 0 ? a : b), step), floor_div(step > 0 ? b : a, step) + 1};
      range& r = ranges_[std::size_t(only->factor)];
      r = exactly ? in : range{std::max(r.first, in.first), std::min(r.last, in.last)};
    }
    if (w.empty && !ranges_.empty()) ranges_[0].last = ranges_[0].first;
  }

  const iteration_space& space_;
  list<range> ranges_;
};

}  // namespace cella
