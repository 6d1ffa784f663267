#include <cella/ops/normalization.hpp>
#include <cella/ops/statistics.hpp>

#include "support/compiled_cases.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr case_input images{.extents = {2, 4, 2, 3}};
constexpr case_input channels{.extents = {4}};
constexpr case_input spread{.extents = {4}, .low = 0.5, .high = 2};
constexpr gradient_case cases[] = {
    {"batch_norm",
     [](var x, var g, var o) { return batch_norm(x, g, o).value; },
     {images, channels, channels}},
    {"batch_norm, statistics",
     [](var x, var g, var o) {
       const auto r = batch_norm(x, g, o, 1e-3, -1);
       return r.mean * r.variance + sum(r.value);
     },
     {{.extents = {3, 4}}, channels, channels}},
    {"batch_norm, given statistics",
     [](var x, var g, var o, var m, var s) { return batch_norm(x, g, o, m, s); },
     {images, channels, channels, channels, spread}},
    {"layer_norm",
     [](var x, var g, var o) { return layer_norm(x, g, o); },
     {{.extents = {3, 4}}, channels, channels}},
    {"layer_norm over two axes",
     [](var x, var g, var o) {
       return layer_norm(x, g, o, {-2, -1});
     },
     {{.extents = {2, 3, 4}}, {.extents = {3, 4}}, channels}},
    {"rms_norm", [](var x, var g) { return rms_norm(x, g); }, {{.extents = {3, 4}}, channels}},
    {"group_norm",
     [](var x, var g, var o) { return group_norm(x, g, o, 2); },
     {images, channels, channels}},
    {"group_norm, one sweep",
     [](var x, var g, var o) { return group_norm(x, g, o, 2); },
     {{.extents = {2, 4, 5, 7}}, {.extents = {4}}, {.extents = {4}}}},
    {"group_norm, one channel for each group",
     [](var x, var g, var o) { return tanh(group_norm(x, g, o, 3)); },
     {{.extents = {2, 3, 33}}, {.extents = {3}}, {.extents = {3}}}},
    {"instance_norm", [](var x) { return instance_norm(x, 1e-2); }, {images}},
    {"local_response_norm", [](var x) { return local_response_norm(x, 3, 0.5); }, {images}},
};
constexpr tensor_type f(const shape& s) { return {dtype::f64, s}; }

}  // namespace

TEST_CASE("normalizations: values, traces and derivatives of both orders agree") {
  // A difference quotient of a quotient of small spreads needs a larger step.
  check_gradients<cases>({.first = 1e-6, .second = 2e-6, .step = 3e-5});
}

TEST_CASE("normalized values have mean 0 and variance 1 per channel, group or sample") {
  const auto x = f64({2, 2, 3}, {1, 2, 3, 10, 30, 20, 4, 5, 6, 50, 40, 60});
  auto moments = [&](auto normalize, const axis_list& axes) {
    const auto r = run_eagerly(
        [&](const vars& v) {
          const var y = normalize(v[0]);
          return vars{mean(y, axes), variance(y, axes)};
        },
        {x});
    check_close(r[0].values, reals(r[0].values.size(), 0.0), 1e-12);
    check_close(r[1].values, reals(r[1].values.size(), 1.0), 1e-12);
  };
  auto filled = [](var like, double value, int n) {
    return constant(*like.b, value, {dtype::f64, {n}});
  };
  moments([&](var v) { return batch_norm(v, filled(v, 1, 2), filled(v, 0, 2), 0).value; }, {0, 2});
  moments([&](var v) { return layer_norm(v, filled(v, 1, 3), filled(v, 0, 3), {-1}, 0); }, {2});
  moments([&](var v) { return instance_norm(v, 0); }, {2});
  moments([&](var v) { return group_norm(v, filled(v, 1, 2), filled(v, 0, 2), 1, 0); }, {1, 2});
}

TEST_CASE("batch_norm returns the batch's statistics, and using them gives the same values") {
  const auto r = run_eagerly(
      [](const vars& v) {
        const auto train = batch_norm(v[0], v[1], v[1]);
        const var use = batch_norm(v[0], v[1], v[1], train.mean, train.variance);
        return vars{train.mean, train.variance, train.value, use};
      },
      {f64({2, 2}, {1, 10, 3, 20}), f64({2}, {2, 3})});
  CHECK(r[0].values == reals{2, 15});
  CHECK(r[1].values == reals{1, 25});
  check_close(r[3].values, r[2].values, 1e-14);
}

TEST_CASE("constant inputs normalize to the offset, not to NaN") {
  const auto y = eval([](var x, var g) { return batch_norm(x, g, g).value; },
                      f64({3, 1}, {5, 5, 5}), f64({1}, {2}));
  CHECK(y.values == reals{2, 2, 2});
}

namespace {
/// Four numbers of the type of v.
var weights_for(var v) { return constant(v, reals{1, 2, -1, 0.5}, {4}, v.element()); }
}  // namespace

TEST_CASE("numbers of 16 bits are normalized in single precision, and so are their derivatives") {
  using function = var (*)(var);
  const function normalized[] = {
      [](var v) { return layer_norm(v, weights_for(v), weights_for(v)); },
      [](var v) { return rms_norm(v, weights_for(v)); },
      [](var v) {
        const var w = weights_for(v);
        return group_norm(reshape(v, {1, 4, 1}), w, w, 2);
      },
      [](var v) {
        return instance_norm(reshape(v, {1, 1, 4})) * weights_for(v);
      },
      [](var v) {
        const var w = slice(weights_for(v), 0, 1, 2);
        const auto r = batch_norm(reshape(v, {4, 1}), w, w);
        return r.value * reshape(weights_for(v), {4, 1});
      },
      [](var v) {
        const var w = slice(weights_for(v), 0, 1, 2);
        return batch_norm(reshape(v, {1, 4, 1}), w, w, 1e-5, 2).value *
               reshape(weights_for(v), {4, 1});
      },
      [](var v) {
        const var w = weights_for(v);
        return batch_norm(v, w, w, w, square(w) * 1e-4, 1e-5);
      },
      [](var v) {
        return local_response_norm(reshape(v, {1, 4, 1}), 3, 0.5);
      },
      [](var v) { return l2_normalize(v) * weights_for(v); },
      [](var v) { return l2_norm(v); },
      [](var v) { return standard_deviation(v); },
  };
  for (const dtype t : {dtype::f16, dtype::bf16}) {
    // Alike, nearly alike, too small and too large for squares of f16.
    for (const reals& row :
         {reals{1, 1, 1, 1}, reals{1, 1, 1.0078125, 1}, reals{1e-4, 2e-4, -1e-4, 3e-4},
          reals{300, -200, 100, 400}, reals{30000, -20000, 10000, 60000}}) {
      valued_tensor x{{t, {1, 4}}, row};
      eager_session s;
      x = s.value(s(x));  // as it is stored
      for (std::size_t k = 0; k < std::size(normalized); ++k) {
        CAPTURE(int(t));
        CAPTURE(row[0]);
        CAPTURE(k);
        const auto both = [&](const valued_tensor& in) {
          return run_eagerly(
              [&](const vars& v) {
                const var y = normalized[k](v[0]);
                return vars{y, gradients(sum(y), std::array{v[0]})[0]};
              },
              {in});
        };
        const auto found = both(x), wanted = both(f64({1, 4}, x.values));
        const double digit = t == dtype::f16 ? 0x1p-11 : 0x1p-8;
        for (std::size_t i = 0; i < 2; ++i) {
          double most = 0;
          for (double v : wanted[i].values) most = std::max(most, std::abs(v));
          if (most > 65504) continue;  // the result itself has no form in f16
          CHECK(relative_difference(found[i].values, wanted[i].values, 1e-4) < 2 * digit);
        }
      }
    }
  }
}

TEST_CASE("the faults of normalizations name the channels") {
  CHECK(fault([](const vars& v) { return batch_norm(v[0], v[1], v[1]).value; },
              {f({2, 3}), f({2})}) ==
        "batch_norm: x1 is [2], but axis 1 of x0 [2,3] has 3 channels");
  CHECK(fault([](const vars& v) { return batch_norm(v[0], v[1], v[1], 1e-5, 2).value; },
              {f({2, 3}), f({3})}) == "batch_norm: x0 [2,3] has no axis 2");
  CHECK(fault([](const vars& v) { return batch_norm(v[0], v[1], v[1], v[1], v[2]); },
              {f({2, 3}), f({3}), f({1, 3})}) ==
        "batch_norm: x2 is [1,3], but axis 1 of x0 [2,3] has 3 channels");
  CHECK(fault([](const vars& v) { return group_norm(v[0], v[1], v[1], 2); },
              {f({2, 3, 4}), f({3})}) ==
        "group_norm: 2 groups do not divide the 3 channels of x0 [2,3,4]");
  CHECK(fault([](const vars& v) { return instance_norm(v[0]); }, {f({2, 3})}) ==
        "instance_norm: needs [N,C,...]: x0 is [2,3]");
  CHECK(fault([](const vars& v) { return local_response_norm(v[0], 0); }, {f({2, 3})}) ==
        "local_response_norm: needs [N,C,...] and a positive size: x0 is [2,3], the size is 0");
}
