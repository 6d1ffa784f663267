#include <cella/ops/attention.hpp>
#include <cella/ops/product_form.hpp>
#include <cella/ops/slicing.hpp>
#include <cmath>

#include "support/compiled_cases.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr case_input queries{.extents = {2, 3, 4}};
constexpr case_input values{.extents = {2, 3, 2}};
constexpr case_input mask{.extents = {3, 3}, .low = 0, .high = 5, .element = dtype::i64};
constexpr gradient_case cases[] = {
    {"full",
     [](var q, var k, var v) { return scaled_dot_product_attention(q, k, v); },
     {queries, queries, values}},
    {"causal",
     [](var q, var k, var v) { return scaled_dot_product_attention(q, k, v, true); },
     {queries, queries, values}},
    {"masked",
     [](var q, var k, var v, var m) { return masked_attention(q, k, v, m > 0); },
     {queries, queries, values, mask}},
    {"heads side by side",
     [](var q, var k, var v) { return multi_head_attention(q, k, v, 2); },
     {queries, {.extents = {2, 5, 4}}, {.extents = {2, 5, 6}}}},
    {"causal heads",
     [](var q, var k, var v) { return multi_head_attention(q, k, v, 2, true); },
     {queries, queries, queries}},
    // Its gradient is one of a few places, so that the products are left to kernels of their own.
    {"heads side by side of which one place is read",
     [](var x) { return slice(multi_head_attention(x, x, x, 2), 1, 0, 1); },
     {queries}},
};

}  // namespace

TEST_CASE("attention: values, traces and derivatives of both orders agree") {
  check_gradients<cases>();
}

TEST_CASE("the scale is that of the library's square root to the last bit but one") {
  for (double x : {1.0, 2.0, 3.0, 4.0, 64.0, 80.0, 1e-3, 1e6})
    CHECK(cella::detail::square_root(x) == doctest::Approx(std::sqrt(x)).epsilon(4e-16));
  static_assert(cella::detail::square_root(64) == 8);
}

TEST_CASE("a causal query sees no later key, and equals a triangular mask") {
  const auto r = run_eagerly(
      [](const vars& x) {
        const var ones = constant(*x[0].b, 1, {dtype::f64, {3, 3}});
        return vars{scaled_dot_product_attention(x[0], x[0], x[1], true),
                    masked_attention(x[0], x[0], x[1], tril(ones) > 0)};
      },
      {case_input{.extents = {3, 2}}.sample(1), f64({3, 1}, {1, 10, 100})});
  CHECK(r[0].values == r[1].values);
  CHECK(r[0].values[0] == 1);
  CHECK(r[0].values[1] < 10);
}

TEST_CASE("attention to equal keys is the mean of the values") {
  const auto y = eval([](var k, var v) { return scaled_dot_product_attention(k, k, v); },
                      f64({2, 3}, reals(6, 1.0)), f64({2, 1}, {1, 3}));
  CHECK(y.values == reals{2, 2});
}

TEST_CASE("heads that lie side by side attend each by itself") {
  const auto r = run_eagerly(
      [](const vars& x) {
        std::vector<var> parts;
        for (int h = 0; h < 3; ++h) {
          const auto head = [&](int k) { return slice(x[std::size_t(k)], -1, 2 * h, 2 * h + 2); };
          parts.push_back(scaled_dot_product_attention(head(0), head(1), head(2), true));
        }
        return vars{multi_head_attention(x[0], x[1], x[2], 3, true), concat(parts, -1)};
      },
      {case_input{.extents = {2, 4, 6}}.sample(1), case_input{.extents = {2, 4, 6}}.sample(2),
       case_input{.extents = {2, 4, 6}}.sample(3)});
  for (std::size_t i = 0; i < r[0].values.size(); ++i)
    CHECK(r[0].values[i] == doctest::Approx(r[1].values[i]));
}

TEST_CASE("products of heads that lie side by side at each place are batches in two runs") {
  const auto by_query = cella::detail::axes_behind(1, 2, 1, 4);
  const auto by_key = cella::detail::axes_behind(1, 3, 1, 4);
  const auto pairs = cella::detail::axes_behind(1, 1, 2, 3);
  const tensor_type q{dtype::f32, {2, 17, 3, 16}}, k{dtype::f32, {2, 19, 3, 16}},
      s{dtype::f32, {2, 3, 17, 19}};
  const product_form scores = form_of_product({by_query, by_key, pairs}, {q, k, s});
  REQUIRE(scores.fits);
  CHECK(std::array{scores.batch, scores.a_batch, scores.c_batch} ==
        std::array<std::int64_t, 3>{3, 16, 17 * 19});
  CHECK(std::array{scores.outer, scores.a_outer, scores.b_outer, scores.c_outer} ==
        std::array<std::int64_t, 4>{2, 17 * 48, 19 * 48, 3 * 17 * 19});
  CHECK(form_of_product({pairs, by_key, by_query}, {s, k, q}).outer == 2);
}
