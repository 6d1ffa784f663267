#include <cella/ops/arranging.hpp>
#include <cella/ops/einsum.hpp>
#include <cella/ops/segments.hpp>
#include <cella/ops/statistics.hpp>

#include "support/gradient_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr case_input matrix{.extents = {3, 4}};
constexpr case_input vector{.extents = {4}};
constexpr case_input image{.extents = {2, 2, 4, 4}};
constexpr case_input numbers(int count, int below) {
  return {.extents = {count}, .low = 0, .high = double(below), .element = dtype::i64};
}
constexpr gradient_case statistics[] = {
    {"standard_deviation", [](var x) { return standard_deviation(x, {1}, false, 1); }, {matrix}},
    {"vector_norm", [](var x) { return vector_norm(x, 3, {1}); }, {matrix}},
    {"vector_norm, largest", [](var x) { return vector_norm(x, infinity, {0}, true); }, {matrix}},
    {"vector_norm, sum", [](var x) { return vector_norm(x, 1); }, {matrix}},
    {"diff", [](var x) { return square(diff(x, 1)); }, {matrix}},
    {"median", [](var x) { return median(x, 1, true) * x; }, {matrix}},
    {"quantile", [](var x) { return quantile(x, 0.3, 0); }, {matrix}},
    {"cummax", [](var x) { return square(cummax(x, 1)); }, {matrix}},
    {"cummin", [](var x) { return cummin(x, 0, true); }, {matrix}},
    {"move_axis", [](var x) { return square(move_axis(x, 1, -1)); }, {{.extents = {2, 3, 2}}}},
    {"invert_permutation",
     [](var x) { return gather(x, invert_permutation(argsort(x, 0)), 0) * 2; },
     {vector}},
    {"repeat", [](var x) { return repeat(x, 2, 1) * 2; }, {matrix}},
    {"roll", [](var x) { return square(roll(x, -3, 1)); }, {matrix}},
    {"rot90", [](var x) { return square(rot90(x, 3)); }, {matrix}},
    {"meshgrid",
     [](var x, var y) {
       return meshgrid({x, y})[0] * meshgrid({x, y})[1];
     },
     {vector, {.extents = {3}}}},
    {"pad_symmetric",
     [](var x) {
       return square(pad_symmetric(x, {2, 0}, {1, 4}));
     },
     {matrix}},
    {"pad_wrap",
     [](var x) {
       return square(pad_wrap(x, {2, 0}, {1, 4}));
     },
     {matrix}},
    {"space_to_batch",
     [](var x) {
       return square(space_to_batch(x, 2, {1, 0}, {1, 2}));
     },
     {image}},
    {"batch_to_space",
     [](var x) {
       return square(batch_to_space(x, 2, {0, 1}, {1, 0}));
     },
     {{.extents = {4, 2, 2, 2}}}},
    {"unique", [](var x) { return unique(x, 5, -1).values * 2; }, {vector}},
};
constexpr case_input rows{.extents = {6, 2}, .low = 0.5, .high = 2};
constexpr gradient_case segments[] = {
    {"segment_max",
     [](var x, var i) { return square(segment_max(x, i, 3)); },
     {rows, numbers(6, 3)}},
    {"segment_min",
     [](var x, var i) { return minimum(segment_min(x, i, 4), 3) * 2; },
     {rows, numbers(6, 4)}},
    {"segment_prod", [](var x, var i) { return segment_prod(x, i, 3); }, {rows, numbers(6, 3)}},
    {"segment_mean", [](var x, var i) { return segment_mean(x, i, 4); }, {rows, numbers(6, 4)}},
    {"scatter_rows, multiply",
     [](var x, var i, var v) { return scatter_rows(x, i, v, scatter_mode::multiply); },
     {matrix, numbers(2, 3), {.extents = {2, 4}}}},
    {"scatter_elements, largest",
     [](var x, var i, var v) { return scatter_elements(x, i, v, 1, scatter_mode::maximum); },
     {matrix,
      {.extents = {2, 3}, .low = 0, .high = 4, .element = dtype::i32},
      {.extents = {2, 3}}}},
    {"scatter_elements, update",
     [](var x, var i, var v) { return square(scatter_elements(x, i, v, 0, scatter_mode::update)); },
     {matrix,
      {.extents = {1, 3}, .low = 0, .high = 3, .element = dtype::i64},
      {.extents = {1, 3}}}},
    {"scatter_nd, smallest",
     [](var x, var i, var v) { return scatter_nd(x, i, v, scatter_mode::minimum) * x; },
     {matrix, {.extents = {5, 2}, .low = 0, .high = 3, .element = dtype::i64}, {.extents = {5}}}},
    {"embedding_bag, weights",
     [](var t, var i, var w) { return embedding_bag(i, t, w); },
     {matrix,
      {.extents = {2, 3}, .low = 0, .high = 3, .element = dtype::i64},
      {.extents = {2, 3}}}},
    {"einsum, batches",
     [](var x, var y) {
       return einsum("bij,bkj->bik", {x, y});
     },
     {{.extents = {2, 3, 4}}, {.extents = {2, 2, 4}}}},
    {"einsum, diagonal",
     [](var x) { return einsum("iij->j", {square(x)}); },
     {{.extents = {3, 3, 2}}}},
    {"einsum, three operands",
     [](var x, var y, var z) {
       return einsum("ij, jk, k", {x, y, z});
     },
     {matrix, {.extents = {4, 2}}, {.extents = {2}}}},
    {"einsum, further axes",
     [](var x, var y) {
       return einsum("...i,...ij->...j", {x, y});
     },
     {{.extents = {2, 1, 3}}, {.extents = {4, 3, 2}}}},
};

}  // namespace

TEST_CASE("statistics and rearrangements: values, traces and derivatives agree") {
  for (const gradient_case& c : statistics) check_gradient(c);
}
TEST_CASE("segments and equations: values, traces and derivatives agree") {
  for (const gradient_case& c : segments) check_gradient(c);
}

TEST_CASE("different elements, how often each occurs and where it stands") {
  const auto x = f64({2, 3}, {3, 1, 3, 2, 1, 3});
  const auto of = [&](auto part) {
    return eval([=](var v) { return part(unique(v, 4, -9)); }, x).values;
  };
  CHECK(of([](auto u) { return u.values; }) == reals{1, 2, 3, -9});
  CHECK(of([](auto u) { return u.counts; }) == reals{2, 1, 3, 0});
  CHECK(of([](auto u) { return u.inverse; }) == reals{2, 0, 2, 1, 0, 2});
  CHECK(of([](auto u) { return u.count; }) == reals{3});
  // Where there is no room for the largest, they are left out, and the count says so.
  CHECK(eval([](var v) { return unique(v, 2).values; }, x).values == reals{1, 2});
  CHECK(eval([](var v) { return unique(v, 2).count; }, x).values == reals{3});
}

TEST_CASE(
    "segments without values have what the reduction starts from, also among narrow integers") {
  const auto x = f64({3}, {4, -2, 7});
  const auto of = [&](auto f, dtype t) {
    return eval([=](var v) { return f(cast(v, t), constant(v, {0, 2, 0})); }, x).values;
  };
  const auto most = [](var v, var i) { return segment_max(v, i, 3); };
  const auto least = [](var v, var i) { return segment_min(v, i, 3); };
  CHECK(of(most, dtype::f32) == reals{7, -infinity, -2});
  CHECK(of(most, dtype::i8) == reals{7, -128, -2});
  CHECK(of(least, dtype::i16) == reals{4, 32767, -2});
  CHECK(of([](var v, var i) { return segment_prod(v, i, 3); }, dtype::i32) == reals{28, 1, -2});
  CHECK(of([](var v, var i) { return segment_prod(v * 0, i, 3); }, dtype::f64) == reals{0, 1, 0});
}

TEST_CASE("a histogram counts each number by the edges that it lies between") {
  constexpr int bins = 7;
  constexpr double low = -0.7, high = 2.1;
  std::vector<double> edges;
  for (int k = 0; k <= bins; ++k) edges.push_back(low + k * ((high - low) / bins));
  edges.back() = high;
  // Edges, the numbers beside them, what is outside, and no number.
  reals x{infinity, -infinity, std::nan(""), 5, -5, 0};
  for (const double e : edges) {
    for (const double v : {e, std::nextafter(e, -9), std::nextafter(e, 9), e + 0.1}) x.push_back(v);
  }
  reals counted(bins);
  for (const double v : x) {
    for (int k = 0; k < bins; ++k) {
      const auto i = std::size_t(k);
      const bool is_last = k == bins - 1;
      counted[i] += v >= edges[i] && (v < edges[i + 1] || (is_last && v == high));
    }
  }
  const auto of = [&](var v) { return histogram(v, bins, low, high); };
  CHECK(eval(of, f64({int(x.size())}, x)).values == counted);
  CHECK(eval([](var v) { return histogram(v, 1, 0, 2); }, f64({4}, {0, 2, 1, 3})).values ==
        reals{3});
}

TEST_CASE("the product's derivative by an element that is 0 is the product of the others") {
  const auto x = f64({4}, {0, 3, 0, 0});
  const auto slope = eval(
      [](var v) {
        return grad([](var t) { return sum(segment_prod(t, constant(t, {0, 0, 1, 1}), 2)); })(v);
      },
      x);
  CHECK(slope.values == reals{3, 0, 0, 0});
}

TEST_CASE("the faults of equations say what is wrong with them") {
  const auto x = f64({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto fails = [&](std::string_view equation, const char* why) {
    CHECK_THROWS_WITH_AS(eval(
                             [=](var v) {
                               return einsum(equation, {v, v});
                             },
                             x),
                         doctest::Contains(why), model_error);
  };
  fails("ij", "another number of terms");
  fails("ijk,ij", "does not fit an operand's rank");
  fails("ij,3ij", "holds more than letters");
  fails("ij,jk", "has another extent");
  fails("ij,ij->k", "names an axis of no operand");
  fails("ij,ij->ii", "names an axis twice");
}

TEST_CASE("deviations and norms have the derivative zero where they are zero") {
  const auto slope = [](auto f, const reals& at) {
    return eval([f](var v) { return grad([f](var t) { return sum(f(t)); })(v); },
                f64({int(at.size())}, at))
        .values;
  };
  CHECK(slope([](var x) { return standard_deviation(x); }, {3, 3, 3}) == reals{0, 0, 0});
  for (double order : {-1.0, 0.5, 1.5, 2.0, 3.0}) {
    CAPTURE(order);
    const auto norm = [order](var x) { return vector_norm(x, order); };
    CHECK(slope(norm, {0, 0}) == reals{0, 0});
    CHECK(slope(norm, {0, 2})[0] == 0);
    CHECK(eval(norm, f64({2}, {0, 0})).values[0] == 0);
  }
  CHECK(eval([](var x) { return vector_norm(x, -1); }, f64({2}, {0, 2})).values[0] == 0);
}

TEST_CASE("the inverse of a permutation undoes it") {
  const auto p = i64({5}, {3, 0, 4, 1, 2});
  CHECK(eval([](var v) { return invert_permutation(v); }, p).values == reals{1, 3, 4, 0, 2});
  CHECK_THROWS_WITH_AS(eval([](var v) { return invert_permutation(v); }, f64({2}, {0, 1})),
                       doctest::Contains("it needs a vector of integers"), model_error);
}
