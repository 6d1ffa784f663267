// Means, variances, losses and gradients over millions of numbers in single precision, compiled
// and in eager mode, against double precision.
#include <doctest/doctest.h>

#include <cella/backend/host/threads.hpp>
#include <cella/graph/random.hpp>
#include <cella/ops/loss.hpp>
#include <cella/ops/normalization.hpp>
#include <cella/runtime/compile.hpp>
#include <cella/runtime/interpreter.hpp>
#include <cella/transform/gradient.hpp>
#include <cmath>
#include <vector>

using namespace cella;

namespace {

/// Numbers in [low, low + 1).
std::vector<float> numbers(std::size_t count, float low) {
  std::vector<float> x(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = low + uniform<float>(9, i);
  return x;
}

struct moments {
  double mean{}, variance{}, norm{};
};
/// Those of `count` numbers that lie `step` apart.
moments moments_of(const float* x, std::size_t count, std::size_t step = 1) {
  moments m;
  for (std::size_t i = 0; i < count; ++i) m.mean += double(x[i * step]);
  m.mean /= double(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double v = double(x[i * step]), d = v - m.mean;
    m.variance += d * d / double(count);
    m.norm += v * v;
  }
  m.norm = std::sqrt(m.norm);
  return m;
}
double relative_error(double found, double expected) { return std::abs(found / expected - 1); }

struct of_matrix {
  constexpr std::array<var, 6> operator()(var x) const {
    return {mean(x), variance(x), l2_norm(x), mean(x, {0}), variance(x, {0}), variance(x, {1})};
  }
};
struct of_cube {
  constexpr std::array<var, 2> operator()(var x) const { return {mean(x, {1}), mean(x, {0, 2})}; }
};
struct of_bias {
  constexpr var operator()(var x, var bias) const {
    return grad([x](var b) { return 0.5 * sum(square(x + b)); })(bias);
  }
};
struct mean_loss {
  constexpr var operator()(var logits, var labels) const {
    return softmax_cross_entropy(logits, labels);
  }
};

}  // namespace

TEST_CASE("moments of ten million numbers near 1000, of any axes and on any number of threads") {
  constexpr std::size_t rows = 2501, columns = 3999;
  const auto x = numbers(rows * columns, 1000);
  thread_pool pool(2);
  compiled<of_matrix, tensor<dtype::f32, int(rows), int(columns)>> run, shared(0, &pool);
  run(x);
  shared(x);
  const moments all = moments_of(x.data(), x.size());
  CHECK(relative_error(double(run.result<0>()[0]), all.mean) < 5e-7);
  // The mean of all is rounded to 1 / 16384: its square is what the variance may be off by.
  CHECK(relative_error(double(run.result<1>()[0]), all.variance) < 1e-6);
  CHECK(relative_error(double(run.result<2>()[0]), all.norm) < 5e-7);
  for (std::size_t j = 0; j < columns; j += 41) {
    const moments m = moments_of(x.data() + j, rows, columns);
    CHECK(relative_error(double(run.result<3>()[j]), m.mean) < 5e-7);
    CHECK(relative_error(double(run.result<4>()[j]), m.variance) < 1e-6);
  }
  for (std::size_t i = 0; i < rows; i += 37) {
    const moments m = moments_of(x.data() + i * columns, columns);
    CHECK(relative_error(double(run.result<5>()[i]), m.variance) < 1e-6);
  }
  CHECK(run.result<0>()[0] == shared.result<0>()[0]);
  CHECK(run.result<1>()[0] == shared.result<1>()[0]);
  CHECK(std::equal(run.result<4>().begin(), run.result<4>().end(), shared.result<4>().begin()));
  CHECK(std::equal(run.result<5>().begin(), run.result<5>().end(), shared.result<5>().begin()));
}

TEST_CASE("means over a middle axis, and over those round it") {
  constexpr std::size_t outer = 3, middle = 50'021, inner = 20;
  const auto x = numbers(outer * middle * inner, 1000);
  compiled<of_cube, tensor<dtype::f32, int(outer), int(middle), int(inner)>> run;
  run(x);
  for (std::size_t i = 0; i < outer * inner; ++i) {
    const float* from = x.data() + i / inner * middle * inner + i % inner;
    CHECK(relative_error(double(run.result<0>()[i]), moments_of(from, middle, inner).mean) < 5e-7);
  }
  for (std::size_t j = 0; j < middle; j += 999) {
    double expected = 0;
    for (std::size_t i = 0; i < outer; ++i)
      expected += moments_of(x.data() + (i * middle + j) * inner, inner).mean / double(outer);
    CHECK(relative_error(double(run.result<1>()[j]), expected) < 5e-7);
  }
}

TEST_CASE("the gradient of a bias over a million rows") {
  constexpr std::size_t rows = 1'000'003, columns = 5;
  const auto x = numbers(rows * columns, 0);
  const std::vector<float> bias{0, 1, 2, 3, 1000};
  compiled<of_bias, tensor<dtype::f32, int(rows), int(columns)>, tensor<dtype::f32, int(columns)>>
      run;
  const auto found = run(x, bias);
  for (std::size_t j = 0; j < columns; ++j) {
    const double sum = (moments_of(x.data() + j, rows, columns).mean + double(bias[j])) * rows;
    CHECK(relative_error(double(found[j]), sum) < 5e-7);
  }
}

TEST_CASE("the mean loss of a large batch") {
  constexpr std::size_t samples = 300'001, classes = 4;
  const auto logits = numbers(samples * classes, 0);
  std::vector<std::int32_t> labels(samples);
  double expected = 0;
  for (std::size_t i = 0; i < samples; ++i) {
    labels[i] = std::int32_t(i * 7 % classes);
    double powers = 0;
    for (std::size_t c = 0; c < classes; ++c) powers += std::exp(double(logits[i * classes + c]));
    expected += std::log(powers) - double(logits[i * classes + std::size_t(labels[i])]);
  }
  compiled<mean_loss, tensor<dtype::f32, int(samples), int(classes)>,
           tensor<dtype::i32, int(samples)>>
      run;
  CHECK(relative_error(double(run(logits, labels)[0]), expected / double(samples)) < 5e-7);
}

TEST_CASE("eager mode has the same moments") {
  auto x = numbers(1'000'003, 1000);
  const tensor_type t{dtype::f32, {int(x.size())}};
  eager_evaluator e;
  builder b;
  b.eager = &e;
  const node_id in = b.input(t, input_role::argument, "x");
  e.values.bind(in, {reinterpret_cast<std::byte*>(x.data()), t});
  const moments m = moments_of(x.data(), x.size());
  const auto value = [&](var v) { return e.read(v.id, 0); };
  CHECK(relative_error(value(mean(var{&b, in})), m.mean) < 5e-7);
  CHECK(relative_error(value(variance(var{&b, in})), m.variance) < 1e-6);
  CHECK(relative_error(value(l2_norm(var{&b, in})), m.norm) < 5e-7);
}
