#include <cella/ops/convolution.hpp>

#include "support/compiled_cases.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr case_input in(const shape& s) { return {.extents = s}; }
constexpr gradient_case cases[] = {
    {"conv2d", [](var x, var w) { return conv2d(x, w); }, {in({2, 2, 4, 5}), in({3, 2, 3, 2})}},
    {"conv2d, stride that leaves a rest",
     [](var x, var w) {
       return conv2d(x, w, {.stride = {2, 3}});
     },
     {in({1, 2, 5, 7}), in({2, 2, 2, 2})}},
    {"conv2d, uneven padding",
     [](var x, var w) {
       return conv2d(x, w, {.before = {1, 0}, .after = {0, 2}});
     },
     {in({1, 2, 3, 3}), in({2, 2, 3, 3})}},
    {"conv2d, dilation",
     [](var x, var w) {
       return conv2d(x, w, {.dilation = {2, 1}});
     },
     {in({1, 1, 5, 3}), in({2, 1, 2, 2})}},
    {"conv2d, groups",
     [](var x, var w) { return conv2d(x, w, {.groups = 2}); },
     {in({1, 4, 3, 3}), in({4, 2, 2, 2})}},
    {"conv2d, depthwise",
     [](var x, var w) {
       return conv2d(x, w, {.before = {1, 1}, .groups = 3});
     },
     {in({1, 3, 3, 3}), in({3, 1, 2, 2})}},
    {"conv2d with itself", [](var x) { return conv2d(x, x); }, {in({2, 2, 2, 2})}},
    {"conv2d_transpose",
     [](var x, var w) {
       return conv2d_transpose(x, w, {.stride = {2, 2}, .before = {1, 1}, .after = {1, 1}}, {1, 0});
     },
     {in({1, 3, 2, 3}), in({3, 2, 3, 3})}},
    {"conv2d_transpose, groups",
     [](var x, var w) { return conv2d_transpose(x, w, {.groups = 2}); },
     {in({1, 4, 2, 2}), in({4, 1, 2, 2})}},
    {"conv1d",
     [](var x, var w) { return conv1d(x, w, 2, 2, 1, 2); },
     {in({2, 2, 6}), in({3, 2, 2})}},
};
constexpr tensor_type f(const shape& s) { return {dtype::f64, s}; }

}  // namespace

TEST_CASE("convolutions and their gradients: values, traces and derivatives of both orders agree") {
  check_gradients<cases>();
}

TEST_CASE("conv2d is a cross-correlation: the filter is not turned round") {
  const auto y = eval([](var x, var w) { return conv2d(x, w); },
                      f64({1, 1, 2, 3}, {1, 2, 3, 4, 5, 6}), f64({1, 1, 2, 2}, {1, 10, 100, 1000}));
  CHECK(y.type.shape == shape{1, 1, 1, 2});
  CHECK(y.values == reals{1 + 20 + 400 + 5000, 2 + 30 + 500 + 6000});
}

TEST_CASE("groups see only their own channels") {
  const auto y = eval([](var x, var w) { return conv2d(x, w, {.groups = 2}); },
                      f64({1, 2, 1, 1}, {1, 10}), f64({4, 1, 1, 1}, {1, 2, 3, 4}));
  CHECK(y.values == reals{1, 2, 30, 40});
}

TEST_CASE("a transposed convolution undoes the extents of the convolution") {
  const window walk{.stride = {3, 2}, .before = {1, 2}, .after = {0, 1}, .dilation = {1, 2}};
  eager_session s;
  const var x = s(f64({1, 1, 9, 8}, reals(72, 1.0)));
  const var w = s(f64({1, 1, 2, 3}, reals(6, 1.0)));
  const var y = conv2d(x, w, walk);
  CHECK(y.shape() == shape{1, 1, 3, 4});
  // Rows 8 and 9 give the same three positions: `extra` chooses.
  CHECK(conv2d_transpose(y, w, walk, {2, 0}).shape() == shape{1, 1, 9, 8});
}

TEST_CASE("the faults of convolutions name both operands and what does not fit") {
  auto convolve = [](const window& walk) {
    return [=](const vars& v) { return conv2d(v[0], v[1], walk); };
  };
  const std::vector<tensor_type> fit{f({1, 2, 4, 4}), f({2, 2, 3, 3})};
  const std::string both = ": x0 is f64[1,2,4,4], x1 is f64[2,2,3,3]";
  CHECK(fault(convolve({}), {f({2, 4, 4}), f({2, 2, 3, 3})}) ==
        "conv2d: image and filter must have rank 4: x0 is f64[2,4,4], x1 is f64[2,2,3,3]");
  CHECK(fault(convolve({}), {f({1, 3, 4, 4}), f({2, 2, 3, 3})}) ==
        "conv2d: channel counts differ: x0 is f64[1,3,4,4], x1 is f64[2,2,3,3]");
  CHECK(fault(convolve({}), {f({1, 2, 4, 4}), {dtype::f32, {2, 2, 3, 3}}}) ==
        "conv2d: element types differ: x0 is f64[1,2,4,4], x1 is f32[2,2,3,3]");
  CHECK(fault(convolve({.groups = 3}), fit) ==
        "conv2d: the groups do not divide the filters" + both);
  CHECK(fault(convolve({.groups = 0}), fit) ==
        "conv2d: the groups do not divide the filters" + both);
  CHECK(fault(convolve({.stride = {1, 0}}), fit) ==
        "conv2d: stride and dilation must be positive" + both);
  CHECK(fault(convolve({.dilation = {-1, 1}}), fit) ==
        "conv2d: stride and dilation must be positive" + both);
  CHECK(fault(convolve({.before = {-1, 0}}), fit) ==
        "conv2d: padding must not be negative (slice() cuts an image)" + both);
  CHECK(fault(convolve({.after = {0, -2}}), fit) ==
        "conv2d: padding must not be negative (slice() cuts an image)" + both);
  CHECK(fault(convolve({.dilation = {2, 1}}), fit) ==
        "conv2d: the filter is larger than the padded image" + both);
  CHECK(fault(convolve({.dilation = {1, 2147483647}}), fit) ==
        "conv2d: the filter is larger than the padded image" + both);
  CHECK(fault(convolve({.before = {0, 2147483647}}), fit) ==
        "conv2d: the padded image is too large for 32 bits" + both);
  auto transposed = [](const window& walk, std::array<int, 2> extra) {
    return [=](const vars& v) { return conv2d_transpose(v[0], v[1], walk, extra); };
  };
  CHECK(fault(transposed({}, {}), {f({1, 3, 4, 4}), f({2, 2, 3, 3})}) ==
        "conv2d_transpose: channel counts differ: x0 is f64[1,3,4,4], x1 is f64[2,2,3,3]");
  CHECK(fault(transposed({.stride = {2, 2}}, {0, 2}), fit) ==
        "conv2d_transpose: the extra rows or columns are not less than the stride" + both);
  CHECK(fault(transposed({.before = {9, 0}}, {}), fit) ==
        "conv2d_transpose: the padding leaves no result" + both);
  CHECK(fault(transposed({.stride = {1, 2147483647}}, {}), fit) ==
        "conv2d_transpose: the result is too large for 32 bits" + both);
  CHECK(fault([](const vars& v) { return conv1d(v[0], v[1]); }, {f({2, 3}), f({2, 3, 3})}) ==
        "conv1d: signal and filter must have rank 3: x0 is f64[2,3], x1 is f64[2,3,3]");
}
