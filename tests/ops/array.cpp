#include <cella/ops/array.hpp>

#include "support/compiled_cases.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr case_input cube{.extents = {2, 3, 4}};
constexpr gradient_case cases[] = {
    {"reshape",
     [](var x) {
       return reshape(x, {4, 6});
     },
     {cube}},
    {"reshape, computed extent",
     [](var x) {
       return reshape(x, {3, -1, 2});
     },
     {cube}},
    {"flatten", [](var x) { return flatten(x); }, {cube}},
    {"transpose",
     [](var x) {
       return transpose(x, {2, 0, 1});
     },
     {cube}},
    {"transpose, negative axes",
     [](var x) {
       return transpose(x, {-1, 0, -2});
     },
     {cube}},
    {"transpose, reversed", [](var x) { return transpose(x); }, {cube}},
    {"transpose of a scalar", [](var x) { return transpose(x); }, {{}}},
    {"transpose of rank 8",
     [](var x) {
       return transpose(x, {7, 0, 6, 1, 5, 2, 4, 3});
     },
     {{.extents = {1, 2, 1, 3, 2, 1, 2, 2}}}},
    {"expand_dims", [](var x) { return expand_dims(expand_dims(x, 1), -1); }, {cube}},
    {"squeeze", [](var x) { return squeeze(squeeze(x, -2), 0); }, {{.extents = {1, 3, 1, 2}}}},
    {"cast to f32 and back",
     [](var x) { return cast(cast(x, dtype::f32), dtype::f64) * 0.0 + x; },
     {cube}},
    {"constants", [](var x) { return x * full_like(x, 3) + zeros_like(x) - ones_like(x); }, {cube}},
    {"iota", [](var x) { return x * iota(*x.b, x.type(), 1); }, {cube}},
};
constexpr tensor_type f(const shape& s) { return {dtype::f64, s}; }

}  // namespace

TEST_CASE("re-arrangements: values, traces and derivatives of both orders agree") {
  check_gradients<cases>();
}

TEST_CASE("transpose puts axis permutation[i] at place i") {
  const auto y = eval(
      [](var x) {
        return transpose(x, {1, 2, 0});
      },
      f64({2, 1, 3}, {1, 2, 3, 4, 5, 6}));
  CHECK(y.type.shape == shape{1, 3, 2});
  CHECK(y.values == reals{1, 4, 2, 5, 3, 6});
}

TEST_CASE("reshape keeps row-major order and returns the same node for the same shape") {
  eager_session s;
  const var x = s(f64({2, 3}, {1, 2, 3, 4, 5, 6}));
  CHECK(s.value(reshape(x, {3, 2})).values == reals{1, 2, 3, 4, 5, 6});
  CHECK(reshape(x, {2, 3}).id == x.id);
  CHECK(reshape(x, {-1}).shape() == shape{6});
  CHECK(flatten(s(scalar(1))).shape() == shape{1, 1});
}

TEST_CASE("a tensor without elements can be reshaped and flattened") {
  eager_session s;
  const var x = s(f64({0, 3}, {}));
  CHECK(flatten(x).shape() == shape{0, 3});
  CHECK(reshape(x, {3, 0, 2}).shape() == shape{3, 0, 2});
  CHECK(transpose(x).shape() == shape{3, 0});
}

TEST_CASE("iota counts along its axis, in every element type") {
  eager_session s;
  for (dtype t : {dtype::f64, dtype::f32, dtype::f16, dtype::i64, dtype::i8}) {
    CHECK(s.value(iota(s.b, {t, {2, 3}}, 1)).values == reals{0, 1, 2, 0, 1, 2});
    CHECK(s.value(iota(s.b, {t, {2, 3}}, 0)).values == reals{0, 0, 0, 1, 1, 1});
  }
}

TEST_CASE("a cast rounds to the element type, cuts to integers, and limits what they cannot hold") {
  auto to = [](dtype t, reals values) {
    return eval([t](var x) { return cast(x, t); }, f64({int(values.size())}, values)).values;
  };
  CHECK(to(dtype::f32, {0.1}) == reals{double(0.1f)});
  CHECK(to(dtype::f16, {0.1, 70000}) == reals{0.0999755859375, infinity});
  CHECK(to(dtype::bf16, {0.1}) == reals{0.10009765625});
  CHECK(to(dtype::i32, {1.9, -1.9, 3e9, -3e9, not_a_number, infinity}) ==
        reals{1, -1, 2147483647, -2147483648.0, 0, 2147483647});
  CHECK(to(dtype::u8, {255, 300, -1}) == reals{255, 255, 0});
  CHECK(to(dtype::i64, {9.3e18, -9.3e18}) == reals{9223372036854775807.0, -9223372036854775808.0});
  CHECK(to(dtype::boolean, {0, 0.5, -2}) == reals{0, 1, 1});
}

TEST_CASE("a derivative passes casts between floating types and stops at integers") {
  const auto x = f64({2}, {1.5, 2.5});
  CHECK(eval(
            [](var v) {
              return grad([](var t) { return sum(cast(cast(t, dtype::f32) * 3, dtype::f64)); })(v);
            },
            x)
            .values == reals{3, 3});
  CHECK(eval(
            [](var v) {
              return grad([](var t) { return sum(t + cast(cast(t, dtype::i32), dtype::f64)); })(v);
            },
            x)
            .values == reals{1, 1});
}

TEST_CASE("the faults of re-arrangements name the tensor, its shape and what does not fit") {
  CHECK(fault([](const vars& v) { return reshape(v[0], {7}); }, {f({2, 3})}) ==
        "reshape: x0 is [2,3] (6 elements), which does not fit [7] (7)");
  CHECK(fault(
            [](const vars& v) {
              return reshape(v[0], {4, -1});
            },
            {f({2, 3})}) == "reshape: x0 is [2,3] (6 elements), which does not fit [4,-1]");
  CHECK(fault(
            [](const vars& v) {
              return reshape(v[0], {-1, -1});
            },
            {f({2, 3})}) == "reshape: x0 is [2,3] (6 elements), which does not fit [-1,-1]");
  CHECK(fault(
            [](const vars& v) {
              return reshape(v[0], {-2, -3});
            },
            {f({2, 3})}) == "reshape: x0 is [2,3] (6 elements), which does not fit [-2,-3] (6)");
  CHECK(fault(
            [](const vars& v) {
              return reshape(v[0], {0, -1});
            },
            {f({0, 3})}) == "reshape: x0 is [0,3] (0 elements), which does not fit [0,-1]");
  for (axis_list wrong : {axis_list{0, 1}, axis_list{0, 1, 1}, axis_list{0, 1, 3},
                          axis_list{0, 1, 2, 0}, axis_list{0, 1, 2, 3, 4, 5, 6, 7, 0}}) {
    CHECK(fault([&](const vars& v) { return transpose(v[0], wrong); }, {f({2, 3, 4})}) ==
          "transpose: the permutation does not name each axis of x0 [2,3,4] once");
  }
  CHECK(fault([](const vars& v) { return expand_dims(v[0], 4); }, {f({2, 3, 4})}) ==
        "expand_dims: x0 [2,3,4] cannot get a new axis at 4; a tensor has at most 8 axes");
  CHECK(
      fault([](const vars& v) { return expand_dims(v[0], 0); }, {f({1, 1, 1, 1, 1, 1, 1, 1})}) ==
      "expand_dims: x0 [1,1,1,1,1,1,1,1] cannot get a new axis at 0; a tensor has at most 8 axes");
  CHECK(fault([](const vars& v) { return squeeze(v[0], -1); }, {f({1, 3})}) ==
        "squeeze: axis -1 of x0 [1,3] does not have extent 1");
  CHECK(fault([](const vars& v) { return squeeze(v[0], 2); }, {f({1, 3})}) ==
        "squeeze: axis 2 of x0 [1,3] does not have extent 1");
}
