#include <cella/ops/softmax.hpp>
#include <cmath>

#include "support/compiled_cases.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr case_input cube{.extents = {2, 3, 4}};
constexpr case_input logits{.extents = {4, 3}};
constexpr case_input labels{.extents = {4}, .low = 0, .high = 3, .element = dtype::i64};
constexpr gradient_case cases[] = {
    {"softmax", [](var x) { return softmax(x); }, {cube}},
    {"softmax along 1", [](var x) { return softmax(x, 1); }, {cube}},
    {"log_softmax", [](var x) { return log_softmax(x); }, {cube}},
    {"log_softmax along 0", [](var x) { return log_softmax(x, -3); }, {cube}},
    {"cross_entropy_per_sample",
     [](var z, var y) { return cross_entropy_per_sample(z, y); },
     {logits, labels}},
    {"softmax_cross_entropy",
     [](var z, var y) { return softmax_cross_entropy(z, y); },
     {logits, labels}},
    {"mean_squared_error", [](var x, var y) { return mean_squared_error(x, y); }, {cube, cube}},
};
constexpr tensor_type f(const shape& s) { return {dtype::f64, s}; }
constexpr tensor_type n(const shape& s) { return {dtype::i64, s}; }

}  // namespace

TEST_CASE("softmax and its losses: values, traces and derivatives of both orders agree") {
  check_gradients<cases>();
}

TEST_CASE("softmax neither overflows nor minds a logit of minus infinity") {
  const auto x = f64({2, 3}, {1000, 1000, 0, -infinity, 0, 0});
  check_close(eval([](var v) { return softmax(v); }, x).values, reals{0.5, 0.5, 0, 0, 0.5, 0.5}, 0);
  check_close(
      eval([](var v) { return log_softmax(v); }, x).values,
      reals{-std::log(2), -std::log(2), -1000 - std::log(2), -infinity, -std::log(2), -std::log(2)},
      1e-15);
}

TEST_CASE("the cross-entropy of equal logits is the logarithm of the number of classes") {
  const auto z = f64({2, 4}, reals(8, 1000.0));
  const auto y = i64({2}, {3, 0});
  CHECK(eval([](var l, var k) { return softmax_cross_entropy(l, k); }, z, y).values[0] ==
        doctest::Approx(std::log(4)).epsilon(1e-13));
  // softmax - one_hot, over the batch
  CHECK(eval(
            [](var l, var k) {
              return grad([](var t, var u) { return softmax_cross_entropy(t, u); })(l, k);
            },
            z, y)
            .values == reals{0.125, 0.125, 0.125, -0.375, -0.375, 0.125, 0.125, 0.125});
}

TEST_CASE("a label outside the classes makes the loss of its sample NaN and no other") {
  const auto loss = eval([](var l, var k) { return cross_entropy_per_sample(l, k); },
                         f64({3, 2}, reals(6, 0.0)), i64({3}, {2, 1, -1}));
  CHECK(std::isnan(loss.values[0]));
  CHECK(loss.values[1] == doctest::Approx(std::log(2)));
  CHECK(std::isnan(loss.values[2]));
}

TEST_CASE("the faults of softmax and its losses name both operands") {
  CHECK(fault([](const vars& v) { return softmax(v[0], 2); }, {f({2, 3})}) ==
        "softmax: x0 [2,3] has no axis 2");
  CHECK(fault([](const vars& v) { return log_softmax(v[0]); }, {f({})}) ==
        "log_softmax: x0 [] has no axis -1");
  auto loss = [](const vars& v) { return softmax_cross_entropy(v[0], v[1]); };
  CHECK(fault(loss, {f({2, 3}), f({2})}) ==
        "softmax_cross_entropy: labels must be integers: x0 is f64[2,3], x1 is f64[2]");
  CHECK(fault(loss, {f({2, 3}), {dtype::boolean, {2}}}) ==
        "softmax_cross_entropy: labels must be integers: x0 is f64[2,3], x1 is bool[2]");
  CHECK(fault(loss, {f({2, 3, 4}), n({2})}) ==
        "softmax_cross_entropy: needs logits [N,C] and labels [N]: x0 is f64[2,3,4], x1 is i64[2]");
  CHECK(fault(loss, {f({2, 3}), n({3})}) ==
        "softmax_cross_entropy: batch sizes differ: x0 is f64[2,3], x1 is i64[3]");
}
