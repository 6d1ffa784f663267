#include <doctest/doctest.h>

#include <cella/backend/cpu/rows/best_position.hpp>
#include <cella/ops/compute.hpp>
#include <cella/ops/reduction.hpp>
#include <limits>
#include <random>
#include <span>
#include <vector>

using namespace cella;
using namespace cella::cpu;

namespace {

/// Few different numbers, so that there are ties; with `nans` of them replaced.
template <class T>
std::vector<T> numbers_with_ties(const search_extents& e, int nans) {
  std::mt19937 random(7);
  std::vector<T> x(std::size_t(e.outer * e.extent * e.inner));
  for (T& v : x) v = T(int(random() % 9) - 4);
  for (int k = 0; k < nans; ++k) x[random() % x.size()] = std::numeric_limits<T>::quiet_NaN();
  return x;
}

/// How many positions differ from the operation's.
template <bool Largest, class T>
int wrong_positions(const search_extents& e, std::vector<T> x) {
  using op = std::conditional_t<Largest, argmax_op, argmin_op>;
  const auto count = std::size_t(e.outer * e.inner);
  std::vector<std::int64_t> expected(count, -9), found(count + 1, -9);
  const shape in{int(e.outer), int(e.extent), int(e.inner)};
  const shape out{int(e.outer), int(e.inner)};
  const tensor_ref from{reinterpret_cast<std::byte*>(x.data()), {dtype_of<T>, in}};
  const tensor_ref to{reinterpret_cast<std::byte*>(expected.data()), {dtype::i64, out}};
  cella::compute(info_of<op>, cella::detail::axis_options{1}, std::span(&from, 1),
                 std::span(&to, 1));
  best_positions<Largest>(e, x.data(), found.data());
  int wrong = found[count] != -9;
  for (std::size_t i = 0; i < count; ++i) wrong += found[i] != expected[i];
  return wrong;
}

}  // namespace

TEST_CASE_TEMPLATE("positions of extrema equal the operations', ties and NaNs included", T, float,
                   double) {
  constexpr int L = lanes<T>;
  for (int extent : {1, 2, 3, L - 1, L, L + 1, 2 * L, 5 * L + 3, 101}) {
    for (int inner : {1, 2, 3, L - 1, L, L + 1, 4 * L - 1, 4 * L, 5 * L + 2, 8 * L}) {
      for (int nans : {0, 1, 7}) {
        const search_extents e{3, extent, inner};
        CAPTURE(extent);
        CAPTURE(inner);
        CAPTURE(nans);
        const std::vector<T> x = numbers_with_ties<T>(e, nans);
        CHECK(wrong_positions<true>(e, x) == 0);
        CHECK(wrong_positions<false>(e, x) == 0);
      }
    }
  }
}
TEST_CASE("where all elements are infinite the first one is the best") {
  for (int inner : {1, 5}) {
    const search_extents e{2, 40, inner};
    const std::vector<double> x(std::size_t(80 * inner), std::numeric_limits<double>::infinity());
    CHECK(wrong_positions<false>(e, x) == 0);
    CHECK(wrong_positions<true>(e, x) == 0);
  }
}
