// Statistics of large batches and of long rows in single precision, against double precision.
#include <cella/backend/cpu/lanes/dense.hpp>
#include <cella/backend/cpu/rows/batch_norm.hpp>
#include <cella/backend/cpu/rows/row_loops.hpp>
#include <cella/backend/cpu/rows/softmax.hpp>
#include <cella/graph/random.hpp>

#include "blocked_reference.hpp"

using namespace cella;
using namespace cella::test;

namespace {

aligned<float> numbers(std::int64_t count, float low) {
  aligned<float> x(count);
  for (std::int64_t i = 0; i < count; ++i) x[i] = low + uniform<float>(5, std::uint64_t(i));
  return x;
}
double relative_error(float found, double expected) {
  return std::abs(double(found) / expected - 1);
}

/// Mean and variance of each channel of images whose first number is `first`.
template <bool Blocked>
void check_moments(int samples, int channels, int pixels, float first) {
  constexpr int L = lanes<float>;
  const norm_extents e{samples, Blocked ? channels / L : channels, pixels};
  auto x = numbers(std::int64_t{samples} * channels * pixels, 1000);
  for (int lane = 0; lane < (Blocked ? L : 1); ++lane) x[lane] = first;
  aligned<float> mean(channels), variance(channels), slices(e.slices() * 2 * channels);
  const norm_sums<float> sums{slices.data(), slices.data() + channels, 2 * channels};
  sum_moments<float, Blocked>({0, e.sum_units()}, e, x.data(), sums);
  finish_moments<float, Blocked>({0, e.blocks}, e, x.data(), sums, mean.data(), variance.data());
  for (int c = 0; c < channels; ++c) {
    const auto for_each = [&](auto f) {
      for (int n = 0; n < samples; ++n) {
        for (int i = 0; i < pixels; ++i)
          f(double(x[Blocked ? in_blocks<float>(channels, pixels, n, c, i)
                             : (std::int64_t{n} * channels + c) * pixels + i]));
      }
    };
    const double share = 1.0 / (double(samples) * pixels);
    double m = 0, v = 0;
    for_each([&](double value) { m += value * share; });
    for_each([&](double value) { v += (value - m) * (value - m) * share; });
    CHECK(relative_error(mean[c], m) < 5e-7);
    CHECK(relative_error(variance[c], v) < 1e-6);
  }
}

}  // namespace

TEST_CASE("batch norm's moments of a large batch of images near 1000") {
  constexpr int L = lanes<float>;
  for (const float first : {1000.f, 0.f}) {
    CAPTURE(first);
    check_moments<true>(20, L, 112 * 112, first);
    check_moments<true>(4001, 2 * L, 49, first);
    check_moments<true>(60'000, L, 1, first);
    check_moments<false>(30, 3, 10'007, first);
    check_moments<false>(100'000, 3, 1, first);
  }
}

TEST_CASE("softmax and cross-entropy of a hundred thousand classes") {
  constexpr int classes = 100'003;
  const auto x = numbers(classes, 0);
  double powers = 0;
  for (int c = 0; c < classes; ++c) powers += std::exp(double(x[c]));
  std::vector<float> y(classes), columns(classes);
  softmax<false>({0, 1}, {.outer = 1, .extent = classes, .inner = 1}, x.data(), y.data());
  float loss = 0;
  const std::int32_t label = 7;
  softmax_cross_entropy_rows<float>({0, 1}, {1, classes}, x.data(), &label, 1.f, nullptr, &loss);
  // The exponentials themselves are right to a few units in the last place.
  for (int c = 0; c < classes; c += 1009)
    CHECK(relative_error(y[std::size_t(c)], std::exp(double(x[c])) / powers) < 2e-6);
  CHECK(relative_error(loss, std::log(powers) - double(x[label])) < 5e-7);

  const auto wide = numbers(std::int64_t{3} * classes, 0);
  std::vector<float> z(std::size_t{3} * classes);
  softmax<false>({0, softmax_units<float>({1, classes, 3})}, {1, classes, 3}, wide.data(),
                 z.data());
  for (int k = 0; k < 3; ++k) {
    double total = 0;
    for (int c = 0; c < classes; ++c) total += std::exp(double(wide[c * 3 + k]));
    CHECK(relative_error(z[std::size_t(k)], std::exp(double(wide[k])) / total) < 2e-6);
  }
}

TEST_CASE("sums of long rows, and over samples in the lanes") {
  using summed = straight_line<terms<operand_at<0, access::same>>, result<0>>;
  using written = straight_line<terms<row_number<0>>, result<0>>;
  constexpr int width = 1'000'003;
  const auto x = numbers(std::int64_t{2} * width, 1000);
  std::array<float, 2> y{};
  row_loops({0, 2}, row_extents{.rows = 2, .width = width},
            addresses<float, 1, 1>{{x.data()}, {y.data()}},
            row_numbers<row_number_of<summed, true>>{}, row_outputs<written, row_form::once>{});
  for (int row = 0; row < 2; ++row) {
    double expected = 0;
    for (int i = 0; i < width; ++i) expected += double(x[std::int64_t{row} * width + i]);
    CHECK(relative_error(y[std::size_t(row)], expected) < 5e-7);
  }

  constexpr int L = lanes<float>, blocks = 30'000, pixels = 3;
  const auto samples = numbers(std::int64_t{blocks} * 2 * pixels * L, 1000);
  std::array<float, std::size_t(L)> sums{};
  lanes_channel_sums({0, 1}, blocks, 2, pixels, samples.data(),
                     [&](vec<float> v, std::int64_t offset, int count) {
                       store_first(sums.data() + offset, count, v);
                     });
  for (int c = 0; c < 2; ++c) {
    double expected = 0;
    for (int b = 0; b < blocks; ++b) {
      for (int i = 0; i < pixels * L; ++i)
        expected += double(samples[(std::int64_t{b} * 2 + c) * pixels * L + i]);
    }
    CHECK(relative_error(sums[std::size_t(c)], expected) < 5e-7);
  }
}

TEST_CASE("the gradient of a dense layer's weights over many samples in the lanes") {
  constexpr int L = lanes<float>, blocks = 200'003 / L, outputs = 3, inputs = 5;
  const lanes_dense_weight_extents e{blocks, outputs, inputs};
  const auto dy = numbers(std::int64_t{blocks} * outputs * L, 10);
  const auto x = numbers(std::int64_t{blocks} * inputs * L, 100);
  aligned<float> xt(lanes_transposed_size<float>(e));
  lanes_transpose({0, lanes_transpose_units<float>(e)}, e, x.data(), xt.data());
  std::array<float, std::size_t(outputs * inputs)> dw{};
  lanes_dense_weight_gradient({0, lanes_dense_weight_gradient_units<float>(e)}, e, dy.data(),
                              xt.data(), [&](vec<float> v, std::int64_t offset, int count) {
                                store_first(dw.data() + offset, count, v);
                              });
  for (int o = 0; o < outputs; ++o) {
    for (int i = 0; i < inputs; ++i) {
      double expected = 0;
      for (int b = 0; b < blocks; ++b) {
        for (int lane = 0; lane < L; ++lane)
          expected += double(dy[(std::int64_t{b} * outputs + o) * L + lane]) *
                      double(x[(std::int64_t{b} * inputs + i) * L + lane]);
      }
      CHECK(relative_error(dw[std::size_t(o * inputs + i)], expected) < 1e-6);
    }
  }
}
