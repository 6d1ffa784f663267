// Sums of many numbers in single precision, against double precision.
#include <doctest/doctest.h>

#include <cella/backend/cpu/loops/short_rows.hpp>
#include <cella/backend/cpu/loops/sums.hpp>
#include <cella/graph/random.hpp>
#include <cmath>
#include <vector>

using namespace cella;
using namespace cella::cpu;

namespace {

using line = straight_line<terms<operand_at<0, access::moving>>, result<0>>;

struct store_sums {
  float* to;
  void operator()(vec<float> value, std::int64_t offset, int count) const {
    store_first(to + offset, count, value);
  }
};

/// Numbers in [1000, 1001): single precision keeps 14 bits behind the point.
std::vector<float> near_thousand(std::int64_t count) {
  std::vector<float> x(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 1000 + uniform<float>(3, i);
  return x;
}

/// The worst relative error of sums of x, [outer][rows][columns], over the axes of a mask.
double error_of_sums(const std::vector<float>& x, const std::array<std::int64_t, 3>& extents,
                     unsigned folded) {
  const auto [outer, rows, columns] = extents;
  const loop_nest<1> nest{3, {outer, rows, columns}, {{{rows * columns, columns, 1}}}, folded};
  const addresses<float, 1, 1> a{{x.data()}, {}};
  // Elements between neighbours of the result along each axis; 0: the axis is folded.
  std::array<std::size_t, 3> step{};
  std::size_t kept = 1;
  for (std::size_t d = 3; d-- > 0;) {
    if (folded >> d & 1) continue;
    step[d] = kept;
    kept *= std::size_t(extents[d]);
  }
  std::vector<double> expected(kept);
  const float* from = x.data();
  for (std::size_t i = 0; i < std::size_t(outer); ++i) {
    for (std::size_t j = 0; j < std::size_t(rows); ++j) {
      double* to = expected.data() + i * step[0] + j * step[1];
      for (std::int64_t k = 0; k < columns; ++k, to += step[2]) *to += double(*from++);
    }
  }
  std::vector<float> y(kept);
  const work_range units{0, sum_units<float, false>(nest)};
  const auto sum_with = [&]<sum_length Length>() {
    sum_loops<float, 1, false, line, adding, Length>(units, nest, a, {}, store_sums{y.data()});
  };
  switch (length_of_sums<float, false>(nest)) {
    case sum_length::few:
      sum_with.operator()<sum_length::few>();
      break;
    case sum_length::some:
      sum_with.operator()<sum_length::some>();
      break;
    case sum_length::many:
      sum_with.operator()<sum_length::many>();
  }
  double worst = 0;
  for (std::size_t i = 0; i < kept; ++i)
    worst = std::max(worst, std::abs(double(y[i]) / expected[i] - 1));
  return worst;
}

}  // namespace

TEST_CASE("sums of ten million numbers near 1000 keep the digits of single precision") {
  const auto x = near_thousand(10'000'000);
  for (const auto& extents : {std::array<std::int64_t, 3>{1, 1, 10'000'000},
                              {1, 1, 9'999'991},
                              {2, 4'999'999, 1},
                              {333'333, 3, 10},
                              {3, 33'331, 100},
                              {100'003, 1, 99},
                              {7, 9, 65'537}}) {
    for (const unsigned folded : {1u, 2u, 4u, 5u, 6u, 7u}) {
      CAPTURE(extents[0]);
      CAPTURE(extents[1]);
      CAPTURE(extents[2]);
      CAPTURE(folded);
      CHECK(error_of_sums(x, extents, folded) < 5e-7);
    }
  }
}

TEST_CASE("a hundred million numbers are no harder") {
  // The same row a thousand times.
  const auto x = near_thousand(100'000);
  const loop_nest<1> nest{2, {1000, 100'000}, {{{0, 1}}}, 3u};
  double expected = 0;
  for (const float v : x) expected += 1000 * double(v);
  float y = 0;
  sum_loops<float, 1, false, line, adding, sum_length::many>({0, 1}, nest, {{x.data()}, {}}, {},
                                                             store_sums{&y});
  CHECK(std::abs(double(y) / expected - 1) < 5e-7);
}

TEST_CASE("sums of equal numbers, whose roundings all go one way, are as good") {
  for (const float value : {1000.1f, 0.1f, 7.7777777f}) {
    CAPTURE(value);
    const std::vector<float> x(4'000'000, value);
    CHECK(error_of_sums(x, {1, 1, 3'999'999}, 4u) < 1e-6);
    CHECK(error_of_sums(x, {1, 99'999, 40}, 2u) < 1e-6);
    CHECK(error_of_sums(x, {1000, 1, 4000}, 5u) < 1e-6);
    // As many as are summed in single precision alone.
    for (const std::int64_t n : {12, 13, 64, 65, 192, 208, 512, 513, 1024, 1040}) {
      CAPTURE(n);
      CHECK(error_of_sums(x, {1, 1, n}, 4u) < 1e-6);
      CHECK(error_of_sums(x, {1, n, 3}, 2u) < 1e-6);
    }
  }
}

TEST_CASE("sums over short rows are as good") {
  static constexpr loop_nest<1> nest{3, {16, 40'000, 8}, {{{320'000, 8, 1}}}, 2u};
  const auto x = near_thousand(5'120'000);
  std::vector<float> y(128);
  sum_short_rows<float, nest, line, adding>({0, short_row_units(nest)}, {{x.data()}, {}},
                                            store_sums{y.data()});
  for (std::size_t i = 0; i < y.size(); ++i) {
    double expected = 0;
    for (std::size_t k = 0; k < 40'000; ++k)
      expected += double(x[(i / 8 * 40'000 + k) * 8 + i % 8]);
    CHECK(std::abs(double(y[i]) / expected - 1) < 5e-7);
  }
}

TEST_CASE("an infinity or NaN among many numbers is in the sum") {
  auto x = near_thousand(100'000);
  const loop_nest<1> nest{1, {100'000}, {{{1}}}, 1u};
  const auto sum_of_all = [&] {
    float y = 0;
    sum_loops<float, 1, false, line>({0, 1}, nest, {{x.data()}, {}}, {}, store_sums{&y});
    return y;
  };
  x[77] = std::numeric_limits<float>::infinity();
  CHECK(sum_of_all() == std::numeric_limits<float>::infinity());
  x[99'999] = -x[77];
  CHECK(std::isnan(sum_of_all()));
}
