#include <doctest/doctest.h>

#include <cella/backend/cpu/rows/move.hpp>
#include <vector>

using namespace cella;
using namespace cella::cpu;

namespace {

/// Elements of a box that are not what the loops say, or that were written beside it.
template <class T>
int misplaced(const box_extents& e, std::int64_t first_read, bool zeros) {
  constexpr std::int64_t room = 4000;
  std::vector<T> x(room), y(room, T(99)), expected = y;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = T(i % 90 + 1);
  // Units in any order, so that none may count on another.
  for (int u = move_units<T>(e); u-- > 0;)
    move_box<T>({u, u + 1}, e, zeros ? nullptr : x.data() + first_read, y.data());
  std::int64_t all = 1;
  for (int d = 0; d < e.loops; ++d) all *= e.size[std::size_t(d)];
  for (std::int64_t k = 0; k < all; ++k) {
    std::int64_t from = first_read, to = 0, rest = k;
    for (int d = e.loops; d-- > 0;) {
      const auto axis = std::size_t(d);
      from += rest % e.size[axis] * e.from[axis];
      to += rest % e.size[axis] * e.to[axis];
      rest /= e.size[axis];
    }
    expected[std::size_t(to)] = zeros ? T{} : x[std::size_t(from)];
  }
  int wrong = 0;
  for (std::size_t i = 0; i < y.size(); ++i) wrong += y[i] != expected[i];
  return wrong;
}

}  // namespace

TEST_CASE_TEMPLATE("boxes are moved", T, float, double, std::uint16_t, std::uint8_t) {
  for (const std::int64_t n : {1, 3, 15, 16, 33, 300}) {
    CAPTURE(n);
    for (const bool zeros : {false, true}) {
      CHECK(misplaced<T>({1, {n}, {1}, {1}}, 0, zeros) == 0);
      CHECK(misplaced<T>({1, {n}, {-1}, {1}}, n - 1, zeros) == 0);
      CHECK(misplaced<T>({1, {n}, {0}, {1}}, 5, zeros) == 0);
      CHECK(misplaced<T>({1, {n}, {2}, {1}}, 0, zeros) == 0);
      CHECK(misplaced<T>({1, {n}, {1}, {2}}, 0, zeros) == 0);
      CHECK(misplaced<T>({1, {n}, {3}, {2}}, 0, zeros) == 0);
      CHECK(misplaced<T>({2, {7, n}, {310, 1}, {320, 1}}, 0, zeros) == 0);
      CHECK(misplaced<T>({3, {2, 3, n}, {1, 0, 4}, {1200, 400, 1}}, 0, zeros) == 0);
    }
    CHECK(misplaced<T>({4, {2, 2, n, 2}, {-1, 9, 3, -1}, {1900, 900, 2, 1}}, 2, false) == 0);
  }
  // Columns beside an image, mirrored, repeated and taken from its other side.
  CHECK(misplaced<T>({2, {9, 2}, {310, -1}, {320, 1}}, 1, false) == 0);
  CHECK(misplaced<T>({3, {3, 3, 4}, {1000, 310, 0}, {1010, 320, 1}}, 7, false) == 0);
  CHECK(misplaced<T>({2, {40, 3}, {97, 1}, {98, 1}}, 94, false) == 0);
  // Rows of a result of many units.
  CHECK(misplaced<T>({2, {61, 60}, {60, 1}, {62, 1}}, 0, false) == 0);
}
