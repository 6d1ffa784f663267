#include <doctest/doctest.h>

#include <cella/graph/shape.hpp>

using namespace cella;

namespace {

constexpr shape inserted(shape s, int axis, int extent) {
  s.insert(axis, extent);
  return s;
}
constexpr shape erased(shape s, int axis) {
  s.erase(axis);
  return s;
}

static_assert(shape{}.size() == 1 && shape{}.rank == 0);
static_assert(shape{2, 3, 4}.size() == 24 && shape{2, 3, 4}.size(1, 3) == 12);
static_assert(shape{2, 0, 4}.size() == 0);
static_assert(inserted({2, 3}, 0, 5) == shape{5, 2, 3});
static_assert(inserted({2, 3}, 2, 5) == shape{2, 3, 5});
static_assert(erased({2, 3, 4}, 0) == shape{3, 4});
static_assert(erased({2, 3, 4}, 2) == shape{2, 3});
static_assert(row_major_strides({2, 3, 4}) == std::array<std::int64_t, max_rank>{12, 4, 1});
static_assert(tensor_type{dtype::f64, {3, 5}}.bytes() == 120);
static_assert(tensor_type{dtype::f64, {3}} != tensor_type{dtype::f32, {3}});

}  // namespace

TEST_CASE("the product of extents does not overflow 32 bits") {
  CHECK(shape{65536, 65536, 4}.size() == std::int64_t{4} << 32);
  CHECK(row_major_strides({2, 65536, 65536})[0] == std::int64_t{1} << 32);
}

TEST_CASE("removing an inserted axis gives an equal shape, unused extents included") {
  const shape s{7, 8, 9, 10};
  for (int axis = 0; axis <= s.rank; ++axis) CHECK(erased(inserted(s, axis, 3), axis) == s);
  CHECK(erased(shape{4}, 0) == shape{});
}

TEST_CASE("iteration runs over the extents of the rank only") {
  std::int64_t sum = 0;
  int count = 0;
  for (std::int32_t e : shape{5, 6}) sum += e, ++count;
  CHECK(sum == 11);
  CHECK(count == 2);
}
