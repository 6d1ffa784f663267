#include <cella/ops/pooling.hpp>
#include <cmath>

#include "support/compiled_cases.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr case_input image{.extents = {2, 2, 5, 6}};
constexpr gradient_case cases[] = {
    {"max_pool", [](var x) { return max_pool(x, 2); }, {image}},
    {"max_pool, overlapping and padded",
     [](var x) { return square(max_pool(x, 3, 2, 1)); },
     {image}},
    {"average_pool", [](var x) { return average_pool(x, 2); }, {image}},
    {"average_pool, padding counts", [](var x) { return average_pool(x, 3, 2, 1); }, {image}},
    {"average_pool, padding does not count",
     [](var x) { return square(average_pool(x, 3, 2, 1, false)); },
     {image}},
    {"global_average_pool", [](var x) { return global_average_pool(x); }, {image}},
};
constexpr tensor_type f(const shape& s) { return {dtype::f64, s}; }

}  // namespace

TEST_CASE("pooling: values, traces and derivatives of both orders agree") {
  check_gradients<cases>();
}

TEST_CASE("of equal elements in a window the first gets the whole derivative") {
  const auto dx = eval([](var x) { return grad([](var t) { return sum(max_pool(t, 2)); })(x); },
                       f64({1, 1, 2, 2}, {3, 3, 3, 3}));
  CHECK(dx.values == reals{1, 0, 0, 0});
}

TEST_CASE("padding never wins, not even against minus infinity, and NaN always does") {
  auto pooled = [](reals x) {
    return eval([](var v) { return max_pool(v, 2, 2, 1); }, f64({1, 1, 2, 2}, std::move(x))).values;
  };
  CHECK(pooled({-5, -6, -7, -infinity}) == reals{-5, -6, -7, -infinity});
  CHECK(std::isnan(pooled({1, not_a_number, 3, 4})[1]));
}

TEST_CASE("windows that overlap add their derivatives") {
  const auto dx = eval([](var x) { return grad([](var t) { return sum(max_pool(t, 2, 1)); })(x); },
                       f64({1, 1, 3, 3}, {0, 0, 0, 0, 9, 0, 0, 0, 0}));
  CHECK(dx.values == reals{0, 0, 0, 0, 4, 0, 0, 0, 0});
}

TEST_CASE("an average over all of a large image is allowed, a maximum is not") {
  const auto x = f64({1, 1, 20, 20}, reals(400, 0.5));
  CHECK(eval([](var v) { return average_pool(v, 20); }, x).values[0] == doctest::Approx(0.5));
  CHECK(fault([](const vars& v) { return max_pool(v[0], 20); }, {x.type}) ==
        "max_pool: a window has at most 256 elements: x0 is [1,1,20,20], window [20,20]");
}

TEST_CASE("the faults of pooling name the image, the window and what does not fit") {
  auto pooled = [](int size, int stride, int padding) {
    return fault([=](const vars& v) { return max_pool(v[0], size, stride, padding); },
                 {f({1, 1, 4, 4})});
  };
  CHECK(pooled(0, 1, 0) ==
        "max_pool: window and stride must be positive: x0 is [1,1,4,4], window [0,0]");
  CHECK(pooled(2, -1, 0) ==
        "max_pool: window and stride must be positive: x0 is [1,1,4,4], window [2,2]");
  CHECK(pooled(3, 1, 2) ==
        "max_pool: padding is negative or exceeds half the window: x0 is [1,1,4,4], window [3,3]");
  CHECK(pooled(3, 1, -1) ==
        "max_pool: padding is negative or exceeds half the window: x0 is [1,1,4,4], window [3,3]");
  CHECK(pooled(5, 1, 0) ==
        "max_pool: the window is larger than the padded image: x0 is [1,1,4,4], window [5,5]");
  CHECK(pooled(2147483647, 1, 1073741823) ==
        "max_pool: a window has at most 256 elements: x0 is [1,1,4,4], window "
        "[2147483647,2147483647]");
  CHECK(pooled(65536, 1, 32768) ==
        "max_pool: a window has at most 256 elements: x0 is [1,1,4,4], window [65536,65536]");
  CHECK(fault([](const vars& v) { return average_pool(v[0], 2); }, {f({4, 4})}) ==
        "average_pool: the image must have rank 4: x0 is [4,4], window [2,2]");
  CHECK(fault([](const vars& v) { return global_average_pool(v[0]); }, {f({4, 4})}) ==
        "global_average_pool: the image must have rank 4: x0 is [4,4]");
}
