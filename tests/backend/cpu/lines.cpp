// Kernels along lines and of single elements beside the reference computations of their operations.
#include <doctest/doctest.h>

#include <algorithm>
#include <cella/backend/cpu/loops/typed_values.hpp>
#include <cella/backend/cpu/rows/fold.hpp>
#include <cella/backend/cpu/rows/indexed_elements.hpp>
#include <cella/backend/cpu/rows/order.hpp>
#include <cella/backend/cpu/rows/reduced_rows.hpp>
#include <cella/backend/cpu/rows/running_best.hpp>
#include <cella/ops/compute.hpp>
#include <cella/ops/prod.hpp>
#include <cella/ops/segments.hpp>
#include <cella/ops/sorting.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace cella;
using namespace cella::cpu;

namespace {

template <class T>
struct numbers {
  tensor_type type;
  std::vector<T> values;

  explicit numbers(const shape& s, T value = T(77))
      : type{std::is_same_v<T, std::uint8_t> ? dtype::boolean : dtype_of<T>, s},
        values(std::size_t(s.size()) + 1, value) {}
  tensor_ref ref() const {
    return {reinterpret_cast<std::byte*>(const_cast<T*>(values.data())), type};
  }
  T* data() { return values.data(); }
};

/// Few different numbers, so that there are ties, zeros of both signs, and `nans`.
template <class T>
numbers<T> with_ties(const shape& s, int nans) {
  static std::mt19937 random(7);
  numbers<T> x(s);
  for (T& v : x.values) v = T(int(random() % 9) - 4) / T(2);
  if constexpr (std::is_floating_point_v<T>) {
    for (T& v : x.values)
      if (v == 0 && random() % 2) v = -v;
    for (int k = 0; k < nans; ++k)
      x.values[random() % x.values.size()] = std::numeric_limits<T>::quiet_NaN();
    if (nans > 1) x.values[0] = -std::numeric_limits<T>::infinity();
  }
  return x;
}

template <class Op, class Y>
numbers<Y> reference(const attributes& o, const shape& s, std::vector<tensor_ref> in) {
  numbers<Y> y(s);
  const tensor_ref to = y.ref();
  compute(info_of<Op>, o, span<const tensor_ref>(in.data(), in.size()),
          span<const tensor_ref>(&to, 1));
  return y;
}

/// How many differ by more than rounding; NaN is NaN.
template <class T>
int differing(const numbers<T>& a, const numbers<T>& b, double rounding = 0) {
  int n = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const auto x = double(a.values[i]), y = double(b.values[i]);
    n += !(x == y || (x != x && y != y) || std::abs(x - y) <= rounding * (1 + std::abs(y)));
  }
  return n;
}

/// Shapes of three axes, of which the middle one is walked along.
const std::vector<shape> shapes{{1, 1, 1},  {3, 5, 1},    {9, 1, 1},    {1, 300, 1}, {4, 129, 1},
                                {6, 97, 1}, {1, 700, 1},  {2, 7, 3},    {3, 2, 64},  {2, 5, 65},
                                {1, 1, 9},  {2, 0, 3},    {0, 4, 1},    {2, 3, 0},   {1, 20000, 1},
                                {5, 96, 1}, {2, 150, 17}, {1, 130, 130}};
search_extents lines_of(const shape& s) { return {s[0], s[1], s[2]}; }
template <class T>
constexpr double rounding_of = std::is_floating_point_v<T> ? 8 * std::numeric_limits<T>::epsilon()
                                                           : 0;

/// Shares the units of a kernel out in two calls.
template <class F>
void in_two(int units, F f) {
  f(work_range{0, units / 2});
  f(work_range{units / 2, units});
}

}  // namespace

TEST_CASE_TEMPLATE("running sums and recurrences agree with their operations", T, float, double,
                   std::int64_t) {
  for (const shape& s : shapes) {
    for (const bool reverse : {false, true}) {
      CAPTURE(s[0]);
      CAPTURE(s[1]);
      CAPTURE(s[2]);
      CAPTURE(reverse);
      const auto x = with_ties<T>(s, 0);
      auto a = with_ties<T>(s, 0);
      for (T& v : a.values) v = v / T(2);  // so that results stay numbers
      const running_extents e{lines_of(s), reverse};
      for (const bool exclusive : {false, true}) {
        numbers<T> y(s);
        in_two(running_units(e), [&](work_range units) {
          running_sums(units, e, exclusive, x.values.data(), y.data());
        });
        const auto expected =
            reference<cumsum_op, T>(cumsum_op::options{1, reverse, exclusive}, s, {x.ref()});
        CHECK(differing(y, expected, rounding_of<T>) == 0);
      }
      numbers<T> y(s);
      in_two(running_units(e), [&](work_range units) {
        running_recurrences(units, e, a.values.data(), x.values.data(), y.data());
      });
      const auto expected = reference<linear_recurrence_op, T>(
          linear_recurrence_op::options{1, reverse}, s, {a.ref(), x.ref()});
      CHECK(differing(y, expected, rounding_of<T>) == 0);
    }
  }
}

TEST_CASE("a long running product is that of one element after the other") {
  const std::int64_t count = 3000;
  std::mt19937 random(11);
  // Factors about 1, and one in between that takes the product out of the range of numbers.
  for (const double outside : {1.0, 0.0, 1e-38, 3e38, double(NAN), double(INFINITY), -2.0}) {
    for (const bool reverse : {false, true}) {
      CAPTURE(outside);
      CAPTURE(reverse);
      const shape s{1, int(count), 1};
      numbers<float> a(s), x(s, 0.0f), y(s);
      for (float& v : a.values) v = float(0.99 + 0.02 * double(random() % 1000) / 1000);
      for (std::size_t i = 700; i < 740; ++i) a.values[i] = float(outside);
      x.values[reverse ? std::size_t(count) - 1 : 0] = -1.5f;
      const running_extents e{lines_of(s), reverse};
      in_two(running_units(e), [&](work_range units) {
        running_recurrences(units, e, a.values.data(), x.values.data(), y.data());
      });
      const auto expected = reference<linear_recurrence_op, float>(
          linear_recurrence_op::options{1, reverse}, s, {a.ref(), x.ref()});
      for (std::size_t i = 0; i < std::size_t(count); ++i) {
        const double v = y.values[i], w = expected.values[i];
        CHECK((v == w || (v != v && w != w) || std::abs(v - w) <= 2e-7 * std::abs(w) + 1e-44));
      }
    }
  }
}

TEST_CASE("a long running sum of small numbers stays right") {
  numbers<float> x({1, 1000001, 1}, 0.1F), y(x.type.shape);
  running_sums({0, 1}, {lines_of(x.type.shape), false}, false, x.values.data(), y.data());
  CHECK(double(y.values[1000000]) == doctest::Approx(1000001 * double{0.1F}).epsilon(1e-7));
}

TEST_CASE_TEMPLATE("running extrema agree with their operation, ties and NaN included", T, float,
                   std::int64_t) {
  for (const shape& s : shapes) {
    for (const bool reverse : {false, true}) {
      for (int nans : {0, 3}) {
        const auto x = with_ties<T>(s, nans);
        const running_extents e{lines_of(s), reverse};
        for (const bool least : {false, true}) {
          numbers<std::int64_t> y(s);
          in_two(running_units(e), [&](work_range units) {
            if (least)
              running_best<false>(units, e, x.values.data(), y.data());
            else
              running_best<true>(units, e, x.values.data(), y.data());
          });
          const auto expected = reference<running_argmax_op, std::int64_t>(
              running_argmax_op::options{1, reverse, least}, s, {x.ref()});
          CAPTURE(s[1]);
          CAPTURE(s[2]);
          CHECK(differing(y, expected) == 0);
        }
      }
    }
  }
}

TEST_CASE_TEMPLATE("elements are put in order as their operation says, whole and in part", T, float,
                   double, std::int32_t, std::int64_t) {
  for (const shape& s : shapes) {
    for (const std::int64_t count : {0, 1, 2, 12, 40}) {
      if (count > s[1]) continue;
      for (int nans : {0, 9}) {
        auto x = with_ties<T>(s, nans);
        // Also numbers that differ in all digits.
        if (nans == 0 && s[1] > 200)
          for (std::size_t i = 0; i < x.values.size(); ++i)
            x.values[i] = T(double(i * 7919 % 10007) * 123456.75 - 6e8);
        for (const bool descending : {false, true}) {
          const argsort_op::options o{1, descending, std::int32_t(count)};
          shape result = s;
          result[1] = std::int32_t(o.wanted(s[1]));
          const order_extents e{lines_of(s), result[1], descending};
          std::vector<std::byte> scratch(std::size_t(order_scratch<T>(e)));
          numbers<std::int64_t> y(result);
          in_two(order_units(e), [&](work_range units) {
            order_lines(units, e, x.values.data(), y.data(), scratch.data());
          });
          const auto expected = reference<argsort_op, std::int64_t>(o, result, {x.ref()});
          CAPTURE(s[1]);
          CAPTURE(s[2]);
          CAPTURE(count);
          CAPTURE(nans);
          CHECK(differing(y, expected) == 0);
          // The elements themselves: those that lie there.
          numbers<T> sorted(result);
          in_two(order_units(e), [&](work_range units) {
            sort_lines(units, e, x.values.data(), sorted.data(), scratch.data());
          });
          numbers<T> there(result);
          const tensor_ref read[] = {x.ref(), expected.ref()}, to = there.ref();
          compute(info_of<gather_elements_op>, gather_elements_op::options{1}, read,
                  span<const tensor_ref>(&to, 1));
          CHECK(differing(sorted, there) == 0);
        }
      }
    }
  }
}

TEST_CASE("both zeros stay what they are in order, and NaN is last, or first") {
  const float none = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x{0.0f, 2.0f, none, -0.0f, -3.0f};
  for (const bool descending : {false, true}) {
    const order_extents e{{1, 5, 1}, 5, descending};
    std::vector<std::byte> scratch(std::size_t(order_scratch<float>(e)));
    std::vector<float> y(5);
    sort_lines({0, 1}, e, x.data(), y.data(), scratch.data());
    if (descending) std::reverse(y.begin(), y.end());
    CHECK(y[0] == -3.0f);
    CHECK(y[1] == 0.0f);
    CHECK(std::signbit(y[1]));
    CHECK(y[2] == 0.0f);
    CHECK_FALSE(std::signbit(y[2]));
    CHECK(y[3] == 2.0f);
    CHECK(std::isnan(y[4]));
  }
}

TEST_CASE_TEMPLATE("single elements are gathered and scattered as their operations say", T, double,
                   std::int32_t) {
  for (const shape& s : shapes) {
    for (const int rows : {1, 4, 50}) {
      const shape table{s[0], rows, s[2]};
      const auto x = with_ties<T>(table, 1);
      const auto values = with_ties<T>(s, 0);
      numbers<std::int64_t> places(s);
      for (std::size_t i = 0; i < places.values.size(); ++i)
        places.values[i] = std::int64_t(i * 31 % std::size_t(rows + 2)) - 1;  // two are outside
      const indexed_elements e{s[0], rows, s[1], s[2]};
      numbers<T> gathered(s), scattered(table);
      in_two(indexed_elements_units(e), [&](work_range units) {
        gather_elements(units, e, x.values.data(), places.values.data(), gathered.data());
        scatter_elements(units, e, values.values.data(), places.values.data(), scattered.data());
      });
      CHECK(differing(gathered, reference<gather_elements_op, T>(cella::detail::indexing_options{1},
                                                                 s, {x.ref(), places.ref()})) == 0);
      CHECK(differing(scattered,
                      reference<scatter_elements_op, T>(scatter_elements_op::options{table, 1},
                                                        table, {values.ref(), places.ref()}),
                      rounding_of<T>) == 0);
    }
  }
}

TEST_CASE_TEMPLATE("rows are combined by index as the operation says, NaN included", T, double,
                   std::int32_t) {
  for (const int width : {1, 3, 64, 150}) {
    const auto x = with_ties<T>({40, width}, 2);
    numbers<std::int32_t> places({40});
    for (std::size_t i = 0; i < places.values.size(); ++i)
      places.values[i] = std::int32_t(i * 31 % 9) - 1;  // two are outside, and one row has none
    const indexed_rows e{8, width, 40};
    const auto check = [&]<fold_rule Rule>(scatter_mode mode) {
      numbers<T> y({8, width});
      in_two(reduced_rows_units(e), [&](work_range units) {
        reduce_rows<Rule>(units, e, x.values.data(), places.values.data(), y.data());
      });
      CAPTURE(width);
      CHECK(differing(y, reference<scatter_reduce_op, T>(
                             scatter_reduce_op::options{8, std::int32_t(mode)}, {8, width},
                             {x.ref(), places.ref()})) == 0);
    };
    check.template operator()<fold_rule::product>(scatter_mode::multiply);
    check.template operator()<fold_rule::largest>(scatter_mode::maximum);
    check.template operator()<fold_rule::smallest>(scatter_mode::minimum);
  }
}

TEST_CASE("integers are counted in several tables, which overflow as one does") {
  for (const std::int64_t rows : {1, 7, 256, 257}) {
    const std::int64_t count = 5003;
    std::vector<std::int32_t> places, x, expected(std::size_t(rows), 0);
    for (std::int64_t i = 0; i < count; ++i) {
      places.push_back(std::int32_t(i * 31 % (rows + 2)) - 1);  // two are outside
      x.push_back(std::int32_t(i % 3 == 0 ? std::numeric_limits<std::int32_t>::max() : i));
      if (places.back() < 0 || places.back() >= rows) continue;
      std::int32_t& sum = expected[std::size_t(places.back())];
      sum = std::int32_t(std::uint32_t(sum) + std::uint32_t(x.back()));
    }
    std::vector<std::int32_t> y(std::size_t(rows), -1);
    scatter_numbers(indexed_rows{rows, 1, count}, x.data(), places.data(), y.data());
    CAPTURE(rows);
    CHECK(y == expected);
  }
}

TEST_CASE("ones stand where the indices say, and nowhere where they are outside") {
  numbers<std::int32_t> places({7});
  for (std::int32_t i = 0; i < 7; ++i) places.values[std::size_t(i)] = i - 1;
  for (const int depth : {1, 5, 5000}) {
    numbers<float> y({7, depth});
    in_two(one_hot_units(7, depth),
           [&](work_range units) { one_hot(units, 7, depth, places.values.data(), y.data()); });
    CHECK(differing(y, reference<one_hot_op, float>(
                           one_hot_op::options{depth, {std::int32_t(dtype::f32)}}, {7, depth},
                           {places.ref()})) == 0);
  }
}

TEST_CASE_TEMPLATE("products, and sums and extrema of integers, agree with their operations", T,
                   float, std::int64_t, std::uint8_t) {
  for (const shape& s : shapes) {
    if (s[1] == 0) continue;
    auto x = with_ties<T>(s, 0);
    if constexpr (std::is_same_v<T, std::uint8_t>)
      for (T& v : x.values) v &= 1;
    if constexpr (std::is_floating_point_v<T>)
      for (T& v : x.values) v = T(1) + v / T(64);
    const search_extents e = lines_of(s);
    const shape result{s[0], s[2]};
    const auto check = [&]<fold_rule Rule, class Op>() {
      numbers<T> y(result);
      in_two(fold_units(e),
             [&](work_range units) { fold_lines<Rule>(units, e, x.values.data(), y.data()); });
      CAPTURE(s[1]);
      CHECK(differing(y, reference<Op, T>(axes_options{2}, result, {x.ref()}), rounding_of<T>) ==
            0);
    };
    if constexpr (!std::is_same_v<T, std::uint8_t>)
      check.template operator()<fold_rule::product, prod_op>();
    if constexpr (!std::is_floating_point_v<T>) {
      if constexpr (!std::is_same_v<T, std::uint8_t>)
        check.template operator()<fold_rule::sum, sum_op>();
      check.template operator()<fold_rule::largest, max_op>();
      check.template operator()<fold_rule::smallest, min_op>();
    }
  }
}

namespace {

template <class Op, class A, class Y>
void check_typed(const attributes& o = {}) {
  const bool chooses = std::is_same_v<Op, select_op>;
  const shape s{1037};
  std::vector<numbers<A>> in{with_ties<A>(s, 9), with_ties<A>(s, 9)};
  if constexpr (std::is_floating_point_v<A>) in[0].values[5] = A(3e30);
  if constexpr (std::is_same_v<A, std::uint8_t>)
    for (auto& x : in)
      for (A& v : x.values) v &= 1;
  auto truths = with_ties<std::uint8_t>(s, 0);
  for (std::uint8_t& v : truths.values) v &= 1;
  std::vector<tensor_ref> x{in[0].ref(), in[1].ref()};
  if (chooses) x.insert(x.begin(), truths.ref());
  x.resize(std::size_t(std::max(1, info_of<Op>.operands)));
  numbers<Y> y(s);
  const typed_form form{&info_of<Op>, x.back().type.element, y.type.element};
  REQUIRE(has_typed_values(form));
  typed_values_of(form)(x[0].data, x.size() > 1 ? x[1].data : nullptr,
                        x.size() > 2 ? x[2].data : nullptr, s.size(), y.ref().data);
  CAPTURE(info_of<Op>.name);
  CHECK(differing(y, reference<Op, Y>(o, s, x)) == 0);
}
template <class Y>
attributes cast_to() {
  return cast_op::options{
      {std::int32_t(std::is_same_v<Y, std::uint8_t> ? dtype::boolean : dtype_of<Y>)}};
}
template <class A>
void check_conversions() {
  check_typed<cast_op, A, float>(cast_to<float>());
  check_typed<cast_op, A, double>(cast_to<double>());
  check_typed<cast_op, A, std::int32_t>(cast_to<std::int32_t>());
  check_typed<cast_op, A, std::int64_t>(cast_to<std::int64_t>());
  check_typed<cast_op, A, std::uint8_t>(cast_to<std::uint8_t>());
}

}  // namespace

TEST_CASE_TEMPLATE("elementwise operations on other types agree with their definition", T, float,
                   std::int32_t, std::int64_t, std::uint8_t) {
  check_typed<equal_op, T, std::uint8_t>();
  check_typed<not_equal_op, T, std::uint8_t>();
  check_typed<less_op, T, std::uint8_t>();
  check_typed<less_equal_op, T, std::uint8_t>();
  check_typed<greater_op, T, std::uint8_t>();
  check_typed<greater_equal_op, T, std::uint8_t>();
  check_typed<select_op, T, T>();
  check_conversions<T>();
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    check_typed<logical_and_op, T, T>();
    check_typed<logical_or_op, T, T>();
    check_typed<logical_not_op, T, T>();
  } else if constexpr (!std::is_floating_point_v<T>) {
    check_typed<add_op, T, T>();
    check_typed<sub_op, T, T>();
    check_typed<mul_op, T, T>();
    check_typed<neg_op, T, T>();
    check_typed<maximum_op, T, T>();
    check_typed<minimum_op, T, T>();
  }
}
