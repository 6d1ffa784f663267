#include <doctest/doctest.h>

#include <array>
#include <cella/backend/cpu/rows/indexed_rows.hpp>
#include <cella/backend/cpu/rows/softmax_rows.hpp>
#include <cella/ops/compute.hpp>
#include <cella/ops/softmax.hpp>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <random>
#include <span>
#include <vector>

using namespace cella;
using namespace cella::cpu;

namespace {

template <class T>
std::vector<T> normal_numbers(int count, double scale = 1) {
  std::mt19937 random(11);
  std::normal_distribution<double> normal;
  std::vector<T> v;
  for (int i = 0; i < count; ++i) v.push_back(T(scale * normal(random)));
  return v;
}
template <class T>
tensor_ref as_tensor(std::vector<T>& v, const shape& s) {
  return {reinterpret_cast<std::byte*>(v.data()), {dtype_of<T>, s}};
}

}  // namespace

TEST_CASE_TEMPLATE("losses of rows and their gradients equal the operations", T, float, double) {
  constexpr double tolerance = std::is_same_v<T, float> ? 2e-6 : 1e-14;
  for (int samples : {1, 7, 8, 9, 20}) {
    for (int classes : {1, 2, 15, 16, 17, 31, 33, 64, 1000}) {
      CAPTURE(samples);
      CAPTURE(classes);
      std::vector<T> z = normal_numbers<T>(samples * classes, 5), loss(std::size_t(samples), T(0));
      std::vector<T> softmax(z.size()), dz(z.size(), T(9)), losses(loss.size(), T(9));
      std::vector<std::int32_t> labels;
      for (int i = 0; i < samples; ++i) labels.push_back(i * 7 % classes);
      const std::array in{as_tensor(z, {samples, classes}), as_tensor(labels, {samples})};
      const std::array loss_to{as_tensor(loss, {samples})};
      const std::array softmax_to{as_tensor(softmax, {samples, classes})};
      cella::compute(info_of<cross_entropy_op>, {}, in, loss_to);
      cella::compute(info_of<softmax_op>, cella::detail::axis_options{1}, std::span(in).first(1),
                     softmax_to);

      const softmax_rows_extents e{samples, classes};
      const T scale = T(0.25);
      for (int u = softmax_rows_units(e); u-- > 0;)
        softmax_cross_entropy_rows<T>({u, u + 1}, e, z.data(), labels.data(), scale, dz.data(),
                                      losses.data());
      double worst = 0;
      for (int i = 0; i < samples; ++i) {
        const auto r = std::size_t(i);
        worst = std::max(worst, std::abs(double{losses[r]} - 0.25 * double{loss[r]}) / 10);
        for (int c = 0; c < classes; ++c) {
          const auto k = r * std::size_t(classes) + std::size_t(c);
          const double expected = 0.25 * (double{softmax[k]} - (labels[r] == c));
          const double error = std::abs(double{dz[k]} - expected);
          worst = error <= worst ? worst : error;
        }
      }
      CHECK(worst < tolerance);

      // Without a gradient, and in place.
      std::vector<T> again(losses.size(), T(9));
      softmax_cross_entropy_rows<T>({0, softmax_rows_units(e)}, e, z.data(), labels.data(), scale,
                                    nullptr, again.data());
      CHECK(again == losses);
      softmax_cross_entropy_rows<T>({0, softmax_rows_units(e)}, e, z.data(), labels.data(), scale,
                                    z.data(), again.data());
      CHECK(z == dz);
    }
  }
}

TEST_CASE("a row whose label is no class counts for nothing") {
  std::vector<float> z = normal_numbers<float>(3 * 20), dz(z.size(), 9.0f), losses(3, 9.0f);
  const std::int32_t labels[] = {-1, 4, 20};
  softmax_cross_entropy_rows<float>({0, 1}, {3, 20}, z.data(), labels, 1.0f, dz.data(),
                                    losses.data());
  CHECK(losses[0] == 0);
  CHECK(losses[1] > 0);
  CHECK(losses[2] == 0);
  for (std::size_t i = 0; i < 20; ++i) {
    CHECK(dz[i] == 0);
    CHECK(dz[40 + i] == 0);
  }
}

TEST_CASE("rows are read by index, and NaN where the table has none") {
  const std::vector<float> table{1, 2, 3, 4, 5, 6};
  const std::int32_t indices[] = {2, 0, 3, -1};
  std::vector<float> y(8, 9.0f);
  gather_rows({0, 1}, {3, 2, 4}, table.data(), indices, y.data());
  CHECK(std::vector<float>(y.begin(), y.begin() + 4) == std::vector<float>{5, 6, 1, 2});
  for (std::size_t i = 4; i < 8; ++i) CHECK(std::isnan(y[i]));
}

TEST_CASE("rows are read in units") {
  const indexed_rows e{7, 1000, 11};
  std::vector<double> table(7 * 1000), y(11 * 1000, -1.0);
  std::iota(table.begin(), table.end(), 0.0);
  std::vector<std::int64_t> indices;
  for (int i = 0; i < 11; ++i) indices.push_back(i * i % 7);
  CHECK(gather_units(e) == 3);
  for (int u = gather_units(e); u-- > 0;)
    gather_rows({u, u + 1}, e, table.data(), indices.data(), y.data());
  for (int i = 0; i < 11; ++i) {
    const auto from = table.begin() + indices[std::size_t(i)] * 1000;
    CHECK(std::equal(from, from + 1000, y.begin() + i * 1000));
  }
}

TEST_CASE("rows add up where their indices are equal, and are dropped where the table has none") {
  const std::vector<double> x{1, 2, 3, 4, 5, 6, 7, 8};
  const std::int32_t indices[] = {1, 1, 5, 0};
  std::vector<double> table(6, 9.0);
  std::array<std::byte, 3> scratch{};
  scatter_rows({0, 1}, {3, 2, 4}, x.data(), indices, table.data(), scratch.data());
  CHECK(table == std::vector<double>{7, 8, 4, 6, 0, 0});
}
TEST_CASE_TEMPLATE("rows of any width add up", T, float, double) {
  for (int width :
       {1, 3, lanes<T> - 1, lanes<T>, lanes<T> + 1, 3 * lanes<T>, 3 * lanes<T> + 2, 150}) {
    CAPTURE(width);
    std::vector<T> x;
    for (int i = 0; i < 20 * width; ++i) x.push_back(T(i % 7 - 3));
    std::vector<std::int64_t> indices;
    for (int i = 0; i < 20; ++i) indices.push_back(i * i % 5);
    std::vector<T> table(std::size_t(5 * width) + 1, T(9)), expected(table.size(), T(0));
    // In turn from the last unit on, as threads might.
    const indexed_rows e{5, width, 20};
    std::array<std::byte, 5> scratch{};
    for (int u = scatter_units(e); u-- > 0;)
      scatter_rows({u, u + 1}, e, x.data(), indices.data(), table.data(), scratch.data());
    for (int i = 0; i < 20 * width; ++i)
      expected[std::size_t(int(indices[std::size_t(i / width)]) * width + i % width)] +=
          x[std::size_t(i)];
    expected.back() = T(9);
    CHECK(table == expected);
  }
}
