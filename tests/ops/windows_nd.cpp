#include <cella/ops/convolution_nd.hpp>
#include <cella/ops/pooling_nd.hpp>

#include "support/gradient_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr case_input volume{.extents = {2, 2, 4, 3, 3}};
constexpr case_input filter{.extents = {4, 2, 2, 2, 1}};
constexpr volume_window odd{{2, 1, 2}, {1, 0, 1}, {0, 1, 0}, {1, 2, 1}, 1};
constexpr volume_window grouped{{1, 1, 1}, {1, 1, 0}, {1, 0, 0}, {2, 1, 1}, 2};
constexpr case_input signal{.extents = {2, 4, 5}};
constexpr case_input image{.extents = {1, 2, 5, 4}};

constexpr gradient_case cases[] = {
    {"conv3d", [](var x, var w) { return conv3d(x, w, odd); }, {volume, filter}},
    {"conv3d, groups",
     [](var x, var w) { return conv3d(x, w, grouped); },
     {volume, {.extents = {4, 1, 3, 2, 1}}}},
    {"conv3d_transpose",
     [](var x, var w) {
       return conv3d_transpose(x, w, odd, {1, 0, 1});
     },
     {{.extents = {1, 4, 2, 3, 2}}, filter}},
    {"conv1d_transpose",
     [](var x, var w) { return conv1d_transpose(x, w, 2, 1, 0, 1, 2, 1); },
     {signal, {.extents = {4, 1, 3}}}},
    {"max_pool1d", [](var x) { return max_pool1d(x, 3, 2, 1); }, {signal}},
    {"average_pool1d",
     [](var x) { return average_pool1d(x, 2, 1, 1, false) * x.extent(0); },
     {signal}},
    {"max_pool3d", [](var x) { return max_pool3d(x, 2, 1, 1); }, {volume}},
    {"average_pool3d", [](var x) { return square(average_pool3d(x, 2, 2, 1, false)); }, {volume}},
    {"max_pool, ceil",
     [](var x) {
       return max_pool(x, {.size = {2, 3}, .ceil = true});
     },
     {image}},
    {"average_pool, ceil",
     [](var x) {
       return average_pool(
           x, {.size = {2, 3}, .before = {0, 1}, .ceil = true, .count_padding = false});
     },
     {image}},
    {"lp_pool",
     [](var x) {
       return lp_pool(x, 3, {.size = {2, 2}, .stride = {1, 1}});
     },
     {image}},
    {"adaptive_average_pool",
     [](var x) { return square(adaptive_average_pool(x, 3, 3)); },
     {image}},
    {"adaptive_max_pool", [](var x) { return square(adaptive_max_pool(x, 3, 7)); }, {image}},
};

/// The sum that defines a convolution of volumes.
reals by_definition(const valued_tensor& x, const valued_tensor& w, const volume_window& o,
                    const shape& y) {
  const auto at = [](const valued_tensor& t, std::array<int, 5> i) {
    std::int64_t p = 0;
    for (int d = 0; d < 5; ++d) {
      if (i[std::size_t(d)] < 0 || i[std::size_t(d)] >= t.type[d]) return 0.0;
      p = p * t.type[d] + i[std::size_t(d)];
    }
    return t.values[std::size_t(p)];
  };
  reals all;
  const int each = w.type[0] / o.groups;
  for_each_index(y, [&](std::int64_t, const multi_index& i) {
    double sum = 0;
    for (int c = 0; c < w.type[1]; ++c)
      for (int p = 0; p < w.type[2]; ++p)
        for (int q = 0; q < w.type[3]; ++q)
          for (int r = 0; r < w.type[4]; ++r)
            sum += at(w, {i[1], c, p, q, r}) *
                   at(x, {i[0], i[1] / each * w.type[1] + c,
                          i[2] * o.stride[0] + p * o.dilation[0] - o.before[0],
                          i[3] * o.stride[1] + q * o.dilation[1] - o.before[1],
                          i[4] * o.stride[2] + r * o.dilation[2] - o.before[2]});
    all.push_back(sum);
  });
  return all;
}

}  // namespace

TEST_CASE("windows over one and three axes: values, traces and derivatives of both orders agree") {
  for (const gradient_case& c : cases) check_gradient(c);
}

TEST_CASE(
    "convolutions of volumes are the sums that define them, and transposes their transposes") {
  for (const auto& [walk, taps] : {std::pair{odd, case_input{.extents = {4, 2, 2, 2, 1}}},
                                   std::pair{grouped, case_input{.extents = {4, 1, 3, 2, 1}}}}) {
    eager_session s;
    const auto x = volume.sample(1), w = taps.sample(2);
    const var y = conv3d(s(x), s(w), walk);
    check_close(s.value(y).values, by_definition(x, w, walk, y.shape()), 1e-14);
    // <conv(x), u> = <x, conv^T(u)>
    const var u = s(case_input{.extents = y.shape()}.sample(3));
    std::array<int, 3> extra{};
    const auto back = [&] { return conv3d_transpose(u, s(w), walk, extra); };
    for (int d = 0; d < 3; ++d) {
      const int lacks = x.type[d + 2] - back().extent(d + 2);
      extra[std::size_t(d)] = lacks;
    }
    check_close(s.value(sum(y * u)).values, s.value(sum(s(x) * back())).values, 1e-13);
  }
}

TEST_CASE("pools to a given size take parts that overlap where they do not divide") {
  const auto x = f64({1, 1, 1, 5}, {1, 2, 3, 4, 10});
  CHECK(eval([](var v) { return adaptive_max_pool(v, 1, 3); }, x).values == reals{2, 4, 10});
  check_close(eval([](var v) { return adaptive_average_pool(v, 1, 3); }, x).values,
              reals{1.5, 3, 7}, 1e-15);
  CHECK(eval(
            [](var v) {
              return max_pool(v, {.size = {1, 2}, .ceil = true});
            },
            x)
            .values == reals{2, 4, 10});
  CHECK(eval(
            [](var v) {
              return average_pool(v, {.size = {1, 2}, .ceil = true, .count_padding = false});
            },
            x)
            .values == reals{1.5, 3.5, 10});
  CHECK(eval(
            [](var v) {
              return max_pool(cast(v, dtype::i8) - 20, {.size = {1, 2}, .after = {0, 1}});
            },
            x)
            .values == reals{-18, -16, -10});
  CHECK(pad_same(5, 3, 2).before + pad_same(5, 3, 2).after == 2);
  CHECK(pad_same(4, 3, 2).before == 0);
  CHECK(pad_same(4, 3, 2).after == 1);
}

TEST_CASE("zeros of the border add nothing to a norm of a window, counted or not") {
  const auto norms = [](bool counted) {
    return eval(
               [counted](var v) {
                 return lp_pool(
                     v, 2,
                     {.size = {1, 2}, .before = {0, 1}, .after = {0, 1}, .count_padding = counted});
               },
               f64({1, 1, 1, 2}, {3, 4}))
        .values;
  };
  CHECK(norms(true) == reals{3, 4});
  CHECK(norms(false) == reals{3, 4});
}

TEST_CASE("the faults of windows over one and three axes name the tensors") {
  constexpr auto f = [](const shape& s) { return tensor_type{dtype::f64, s}; };
  CHECK(fault([](const vars& v) { return conv3d(v[0], v[1]); }, {f({1, 2, 3}), f({1, 2, 1})}) ==
        "conv3d: volume and filter must have rank 5: x0 is f64[1,2,3], x1 is f64[1,2,1]");
  CHECK(fault([](const vars& v) { return conv3d(v[0], v[1]); },
              {f({1, 1, 2, 3, 3}), f({1, 1, 3, 1, 1})}) ==
        "conv3d: the filter is deeper than the padded volume: x0 is f64[1,1,2,3,3], x1 is "
        "f64[1,1,3,1,1]");
  CHECK(fault([](const vars& v) { return max_pool1d(v[0], 2); }, {f({2, 3})}) ==
        "max_pool1d: the signal must have rank 3: x0 is [2,3]");
  CHECK(fault([](const vars& v) { return max_pool3d(v[0], 2); }, {f({2, 3})}) ==
        "max_pool3d: the volume must have rank 5: x0 is [2,3]");
}
