// Bounds of sums over the points of loops, from how many points share an element.
#pragma once

#include <algorithm>
#include <cella/graph/interval.hpp>
#include <cella/graph/iteration_space.hpp>

namespace cella {

/// How many points of the loops share an element of a tensor.
struct point_count {
  std::int64_t most = 1;
  bool same = true;  ///< for all elements: each has that many
};

/// Points that share an element of tensor `t`, of type `type`. Of a walk in which several factors
/// meet, as of a window's taps at one place, at most one of the largest is left when the others are
/// known; if their steps keep them apart, as groups and the channels of each, none is open.
constexpr point_count points_at_element(const iteration_space& s, int t, const tensor_type& type) {
  struct step {
    std::int64_t by{}, extent{};
  };
  point_count n;
  for (int f = 0; f < int(s.factors.size()); ++f)
    if (!s.walks_along(t, f)) n.most *= s.factors[std::size_t(f)].extent;
  for (const iteration_space::indexed_axis& a : s.indexed) n.same &= a.tensor != t;
  for (int axis = 0; axis < type.rank(); ++axis) {
    list<step> steps;
    bool moved = false;
    for (const iteration_space::walk& w : s.walks) {
      if (w.tensor != t || w.axis != axis) continue;
      if (w.factor == iteration_space::none)
        moved = true;
      else
        steps.push_back({w.step < 0 ? -w.step : w.step, s.factors[std::size_t(w.factor)].extent});
    }
    std::sort(steps.begin(), steps.end(), [](step a, step b) { return a.by < b.by; });
    std::int64_t reach = 0, places = 1, largest = 1;
    bool apart = true;
    for (const step& x : steps) {
      apart &= x.by > reach || x.extent == 1;
      reach += x.by * (x.extent - 1);
      places *= x.extent;
      largest = std::max(largest, x.extent);
    }
    if (!apart) n.most *= places / largest;
    n.same &= apart && !moved && places == type[axis] && reach == type[axis] - 1;
  }
  return n;
}

/// Whether some points lie beside tensor `t`, in padding.
constexpr bool has_padding(const iteration_space& s, int t, const tensor_type& type) {
  for (int axis = 0; axis < type.rank(); ++axis) {
    std::int64_t first = 0, last = 0;
    for (const iteration_space::walk& w : s.walks) {
      if (w.tensor != t || w.axis != axis) continue;
      const bool moves = w.factor != iteration_space::none;
      const std::int64_t by =
          moves ? w.step * (s.factors[std::size_t(w.factor)].extent - 1) : w.step;
      first += moves ? std::min<std::int64_t>(by, 0) : by;
      last += moves ? std::max<std::int64_t>(by, 0) : by;
    }
    if (first < 0 || last >= type[axis]) return true;
  }
  return false;
}

/// What the points read from operand `t`, whose elements lie in `x`: zeros where there is padding.
constexpr interval read_by_points(const iteration_space& s, int t, const tensor_type& type,
                                  const interval& x) {
  return has_padding(s, t, type) ? hull(x, {0, 0}) : x;
}

/// The first result, of type `type`, as the sum of what its points bring, each within `point`.
constexpr interval sum_over_points(const iteration_space& s, const tensor_type& type,
                                   const interval& point) {
  const point_count n = points_at_element(s, s.result(), type);
  const interval all = double(n.most) * point;
  return n.same ? all : hull(all, {0, 0});
}

}  // namespace cella
