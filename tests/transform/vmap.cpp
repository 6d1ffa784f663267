#include <cella/ops/functions.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/softmax.hpp>
#include <cella/transform/custom.hpp>
#include <cella/transform/jacobian.hpp>

#include "support/transform_check.hpp"

using namespace cella;
using namespace cella::test;

TEST_CASE("vmap does for every sample what the function does for one") {
  auto f = [](const vars& v) {
    auto one = [&](var x, var y) { return std::pair{matmul(v[2], x) * y, sum(x)}; };
    const auto [a, b] = vmap(one)(v[0], v[1]);
    return vars{a, b};
  };
  const std::vector<valued_tensor> in{f64({3, 2}, {1, 2, 3, 4, 5, 6}), f64({3}, {1, 10, 100}),
                                      f64({2, 2}, {1, 0, 1, 1})};
  for (const auto& r : {run_eagerly(f, in), run_traced(f, in)}) {
    CHECK(r[0].values == reals{1, 3, 30, 70, 500, 1100});
    CHECK(r[1].values == reals{3, 7, 11});
  }
}

TEST_CASE("a result that does not depend on the sample is repeated") {
  const auto r =
      run_traced([](const vars& v) { return vars{vmap([&](var) { return v[1]; })(v[0])}; },
                 {f64({3}, {1, 2, 3}), f64({2}, {4, 5})});
  CHECK(r[0].values == reals{4, 5, 4, 5, 4, 5});
}

TEST_CASE("per-example gradients, and their gradient") {
  check_transforms(
      [](const vars& x) {
        return vmap([&](var row) {
          return sum(grad([&](var w) { return sum(tanh(matmul(w, row))); })(x[0]));
        })(x[1]);
      },
      {f64({2, 3}, {0.3, -0.2, 0.8, 0.1, 0.5, 0.6}),
       f64({4, 3}, {0.1, 0.2, 0.3, -0.4, 0.5, -0.6, 0.7, 0.8, -0.9, 0.2, 0.4, 0.1})});
}

TEST_CASE("vmap nests, and batches a product on both sides") {
  const auto r = run_traced(
      [](const vars& v) {
        // all pairs of rows
        return vars{
            vmap([&](var x) { return vmap([&](var y) { return matmul(x, y); })(v[1]); })(v[0])};
      },
      {f64({2, 2}, {1, 2, 3, 4}), f64({3, 2}, {1, 0, 0, 1, 1, 1})});
  CHECK(r[0].type.shape == shape{2, 3});
  CHECK(r[0].values == reals{1, 2, 3, 3, 4, 7});
}

TEST_CASE("an operation without a rule runs sample by sample") {
  // Both the table and the indices have samples.
  const auto r = run_traced(
      [](const vars& v) {
        return vars{vmap([](var table, var i) { return gather(table, i); })(v[0], v[1])};
      },
      {f64({2, 3}, {1, 2, 3, 4, 5, 6}), i64({2, 2}, {2, 0, 1, 1})});
  CHECK(r[0].values == reals{3, 1, 5, 5});
}

TEST_CASE("indices with samples read along any axis") {
  for (int axis : {0, 1}) {
    const auto r = run_traced(
        [=](const vars& v) {
          auto read = [&](var i) { return gather(v[0], i, axis); };
          return vars{vmap(read)(v[1]),
                      stack({read(slice(v[1], 0, 0, 1)), read(slice(v[1], 0, 1, 2))}, 0)};
        },
        {f64({2, 2}, {1, 2, 3, 4}), i64({2}, {1, 0})});
    CHECK(r[0].values == r[1].values);
  }
}

TEST_CASE("a rank-8 tensor has no room for samples, and that is said") {
  try {
    const traced_function g(
        [](const vars& v) { return vars{vmap([&](var x) { return v[1] * x; })(v[0])}; },
        {{dtype::f64, {2}}, {dtype::f64, {1, 1, 1, 1, 1, 1, 1, 2}}});
    CHECK(false);
  } catch (const model_error& e) {
    CHECK(std::string(e.what()).find("has no room for one more axis") != std::string::npos);
  }
}
