#include <cella/ops/loss.hpp>
#include <cmath>

#include "support/compiled_cases.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr case_input x{.extents = {4, 3}};
constexpr case_input share{.extents = {4, 3}, .low = 0.1, .high = 0.9};
constexpr case_input labels{.extents = {4}, .low = 0, .high = 3, .element = dtype::i64};
constexpr gradient_case cases[] = {
    {"l1_loss", [](var p, var t) { return l1_loss(p, t); }, {x, x}},
    {"huber_loss", [](var p, var t) { return huber_loss(p, t, 0.7); }, {x, x}},
    {"smooth_l1_loss",
     [](var p, var t) { return smooth_l1_loss(p, t, 0.5, reduction::sum); },
     {x, x}},
    {"kl_div", [](var q, var p) { return kl_div(q, p); }, {x, share}},
    {"nll_loss", [](var q, var y) { return nll_loss(q, y); }, {x, labels}},
    {"binary_cross_entropy",
     [](var p, var t) { return binary_cross_entropy(p, t, reduction::none); },
     {share, share}},
    {"sigmoid_cross_entropy", [](var z, var t) { return sigmoid_cross_entropy(z, t); }, {x, share}},
    {"cosine_similarity", [](var a, var b) { return cosine_similarity(a, b); }, {x, x}},
    {"softmax_cross_entropy, probabilities",
     [](var z, var p) { return softmax_cross_entropy(z, p, {}); },
     {x, share}},
    {"softmax_cross_entropy, smoothed",
     [](var z, var y) { return softmax_cross_entropy(z, y, {.label_smoothing = 0.1}); },
     {x, labels}},
    {"softmax_cross_entropy, ignoring",
     [](var z, var y) { return softmax_cross_entropy(z, y, {.ignored_label = 1}); },
     {x, labels}},
};
constexpr tensor_type f(const shape& s) { return {dtype::f64, s}; }

}  // namespace

TEST_CASE("losses: values, traces and derivatives of both orders agree") {
  check_gradients<cases>();
}

TEST_CASE("losses reduce to their mean, their sum or not at all") {
  const auto p = f64({2}, {1, 5}), t = f64({2}, {2, 2});
  auto l1 = [&](reduction r) {
    return eval([r](var a, var b) { return l1_loss(a, b, r); }, p, t).values;
  };
  CHECK(l1(reduction::mean) == reals{2});
  CHECK(l1(reduction::sum) == reals{4});
  CHECK(l1(reduction::none) == reals{1, 3});
}

TEST_CASE("the huber loss is quadratic up to delta and linear beyond") {
  const auto loss = [](double d) {
    return eval([](var a, var b) { return huber_loss(a, b, 2); }, scalar(d), scalar(0)).values[0];
  };
  CHECK(loss(1) == 0.5);
  CHECK(loss(-2) == 2);
  CHECK(loss(5) == 8);
}

TEST_CASE("cross-entropies stay finite where the prediction is certain") {
  const auto t = f64({2}, {1, 0});
  CHECK(eval([](var a, var b) { return binary_cross_entropy(a, b, reduction::none); },
             f64({2}, {0, 1}), t)
            .values == reals{100, 100});
  CHECK(eval([](var a, var b) { return sigmoid_cross_entropy(a, b, reduction::none); },
             f64({2}, {800, 800}), t)
            .values == reals{0, 800});
  CHECK(eval(
            [](var a, var b) {
              return grad([](var z, var u) { return sigmoid_cross_entropy(z, u, reduction::sum); })(
                  a, b);
            },
            f64({2}, {0, -800}), t)
            .values == reals{-0.5, 0});
}

TEST_CASE("a target probability of zero adds nothing to the divergence") {
  CHECK(eval([](var q, var p) { return kl_div(q, p); }, f64({1, 2}, {-5, std::log(0.5)}),
             f64({1, 2}, {0, 1}))
            .values[0] == doctest::Approx(std::log(2)));
  // Nor where the prediction is zero, too.
  CHECK(eval([](var q, var p) { return kl_div(q, p); }, f64({1, 2}, {-HUGE_VAL, 0}),
             f64({1, 2}, {0, 1}))
            .values[0] == 0);
}

TEST_CASE("probabilities of 0 and 1 have a cross-entropy and derivatives") {
  // Right and wrong ones; logarithms count as at least -100.
  const auto p = f64({5}, {0, 1, 1, 0, 0.25}), t = f64({5}, {0, 1, 0, 1, 1});
  const auto loss = [](var x, var y) { return binary_cross_entropy(x, y, reduction::sum); };
  CHECK(eval(loss, p, t).values[0] == doctest::Approx(200 - std::log(0.25)));
  CHECK(eval([&](var x, var y) { return grad(loss)(x, y); }, p, t).values ==
        reals{1, -1, 0, 0, -4});
  // What training sees: single precision has no number between sigmoid(20) and 1.
  const auto of_logits = [&](var z, var y) {
    return loss(sigmoid(cast(z, dtype::f32)), cast(y, dtype::f32));
  };
  const auto d = eval([&](var z, var y) { return grad(of_logits)(z, y); }, f64({2}, {20, -200}),
                      f64({2}, {1, 0}));
  CHECK(d.values == reals{0, 0});
}

TEST_CASE("ignored labels change neither the loss nor the gradient, even outside the classes") {
  const auto z = f64({3, 2}, {1, 2, 3, 4, 5, 7});
  auto loss = [](var l, var y) { return softmax_cross_entropy(l, y, {.ignored_label = -100}); };
  const auto some = eval(loss, z, i64({3}, {0, -100, 1}));
  const auto kept = eval(loss, f64({2, 2}, {1, 2, 5, 7}), i64({2}, {0, 1}));
  CHECK(some.values[0] == doctest::Approx(kept.values[0]).epsilon(1e-15));
  const auto d = eval([&](var l, var y) { return grad(loss)(l, y); }, z, i64({3}, {0, -100, 1}));
  CHECK(d.values[2] == 0);
  CHECK(d.values[3] == 0);
  CHECK(d.values[0] == doctest::Approx((1 / (1 + std::exp(1)) - 1) / 2).epsilon(1e-14));
}

TEST_CASE("where all labels are ignored the loss is 0, and so is its gradient") {
  const auto z = f64({2, 2}, {1, 2, 3, 4});
  const auto y = i64({2}, {1, 1});
  const auto loss = [](var l, var labels) {
    return softmax_cross_entropy(l, labels, {.label_smoothing = 0.1, .ignored_label = 1});
  };
  CHECK(eval(loss, z, y).values[0] == 0);
  CHECK(eval([&](var l, var labels) { return grad(loss)(l, labels); }, z, y).values ==
        reals{0, 0, 0, 0});
}

TEST_CASE("cosine similarity is 1 for parallel, 0 for orthogonal and for zero vectors") {
  const auto a = f64({3, 2}, {1, 1, 1, 0, 0, 0}), b = f64({3, 2}, {2, 2, 0, 3, 1, 1});
  check_close(eval([](var u, var v) { return cosine_similarity(u, v); }, a, b).values,
              reals{1, 0, 0}, 1e-15);
  // The squares of these have a single-precision number, their product has none.
  const auto large = [](var u) {
    const var x = cast(u, dtype::f32) * 1e12;
    return cosine_similarity(x, x);
  };
  CHECK(eval(large, f64({1, 2}, {1, 1})).values[0] == doctest::Approx(1));
}

TEST_CASE("cosine similarity of large vectors and of 16-bit zeros is a number") {
  const auto similarity = [](dtype t, const reals& a, const reals& b) {
    return eval([](var u, var v) { return cosine_similarity(u, v); }, valued_tensor{{t, {1, 2}}, a},
                valued_tensor{{t, {1, 2}}, b})
        .values[0];
  };
  CHECK(similarity(dtype::f32, {3e10, 4e10}, {6e10, 8e10}) == doctest::Approx(1).epsilon(1e-6));
  CHECK(similarity(dtype::f16, {0, 0}, {1, 2}) == 0);
}

TEST_CASE("binary cross-entropy of certain predictions has a finite derivative") {
  const auto slope = eval(
      [](var v, var t) {
        return grad([](var p, var y) { return binary_cross_entropy(p, y, reduction::sum); })(v, t);
      },
      f64({5}, {0, 0, 1, 1, 0.25}), f64({5}, {0, 1, 0, 1, 1}));
  CHECK(slope.values == reals{1, 0, 0, -1, -4});
}

TEST_CASE("without its quadratic part smooth_l1_loss is l1_loss") {
  const auto at = f64({3}, {0, 1, -2}), to = f64({3}, {0, 3, 1});
  CHECK(eval([](var p, var t) { return smooth_l1_loss(p, t, 0); }, at, to).values[0] ==
        doctest::Approx(5. / 3).epsilon(1e-15));
}

TEST_CASE("the faults of losses name both operands") {
  CHECK(fault([](const vars& v) { return nll_loss(v[0], v[1]); }, {f({2, 3}), {dtype::i64, {3}}}) ==
        "nll_loss: needs log-probabilities [N,C] and labels [N]: x0 is [2,3], x1 is [3]");
  CHECK(fault([](const vars& v) { return softmax_cross_entropy(v[0], v[1], {}); },
              {f({2, 3}), f({3})}) ==
        "softmax_cross_entropy: needs logits and probabilities [N,C]: x0 is [2,3], x1 is [3]");
  CHECK(fault([](const vars& v) { return softmax_cross_entropy(v[0], v[1], {}); },
              {f({2, 3}), {dtype::i64, {3}}}) ==
        "softmax_cross_entropy: batch sizes differ: x0 is f64[2,3], x1 is i64[3]");
}
