#include <doctest/doctest.h>

#include <algorithm>
#include <cella/backend/cpu/convolution/single_sample.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

using namespace cella;
using namespace cella::cpu;

namespace {

constexpr std::size_t guard = 40;

template <class T>
std::vector<T> random_values(std::int64_t size, std::mt19937& random) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<T> values(static_cast<std::size_t>(size));
  for (T& v : values) v = static_cast<T>(uniform(random));
  return values;
}

template <class T>
struct recorder {
  T* target;
  int* visits;
  int columns;
  int* disagreements;
  void operator()(vec<T> value, std::int64_t offset, int row, int column, int count) const {
    store_first(target + offset, count, value);
    for (int i = 0; i < count; ++i) ++visits[offset + i];
    if (offset != std::int64_t{row} * columns + column || count < 1 || column + count > columns) {
      ++*disagreements;
    }
  }
};

/// The convolution, pooled or not, by its definition in double precision.
template <class T>
std::vector<double> reference(const convolution_extents& e, const std::vector<T>& x,
                              const std::vector<T>& w, bool pool) {
  const auto &v = e.vertical, &h = e.horizontal;
  const int window = pool ? 2 : 1, rows = v.output() / window, columns = h.output() / window;
  std::vector<double> y(static_cast<std::size_t>(e.out_channels * rows * columns));
  for (int o = 0; o < e.out_channels; ++o) {
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < columns; ++j) {
        double largest = -std::numeric_limits<double>::infinity();
        for (int k = 0; k < window * window; ++k) {
          double sum = 0;
          for (int c = 0; c < e.in_channels; ++c) {
            for (int kh = 0; kh < v.kernel; ++kh) {
              for (int kw = 0; kw < h.kernel; ++kw) {
                const int r = (i * window + k / 2) * v.stride - v.padding_before + kh * v.dilation;
                const int q = (j * window + k % 2) * h.stride - h.padding_before + kw * h.dilation;
                if (r < 0 || r >= v.size || q < 0 || q >= h.size) continue;
                sum += double{x[static_cast<std::size_t>((c * v.size + r) * h.size + q)]} *
                       double{w[static_cast<std::size_t>(
                           ((o * e.in_channels + c) * v.kernel + kh) * h.kernel + kw)]};
              }
            }
          }
          largest = std::max(largest, sum);
        }
        y[static_cast<std::size_t>((o * rows + i) * columns + j)] = largest;
      }
    }
  }
  return y;
}

template <class T, class Run>
void compare(const std::vector<double>& expected, int columns, double depth, int units,
             const Run& run) {
  std::vector<T> found(expected.size() + 2 * guard, std::numeric_limits<T>::quiet_NaN());
  std::vector<int> visits(expected.size(), 0);
  int disagreements = 0;
  const recorder<T> sink{found.data() + guard, visits.data(), columns, &disagreements};
  for (int i = 3; i-- > 0;) run(sink, part_of(units, 3, i));
  int wrong = 0, missed = 0, touched = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double error = std::abs(double{found[guard + i]} - expected[i]);
    const double tolerance = std::numeric_limits<T>::epsilon() * (8 + depth);
    if (!(error <= tolerance * (1 + std::abs(expected[i])))) ++wrong;
    if (visits[i] != 1) ++missed;
  }
  for (std::size_t i = 0; i < guard; ++i) {
    touched += !std::isnan(found[i]) + !std::isnan(found[found.size() - 1 - i]);
  }
  CHECK(wrong == 0);
  CHECK(missed == 0);
  CHECK(touched == 0);
  CHECK(disagreements == 0);
}

template <pooling Pool, class T>
void check(const convolution_extents& e) {
  INFO("x [" << e.in_channels << "," << e.vertical.size << "," << e.horizontal.size << "] out "
             << e.out_channels << " kernel " << e.vertical.kernel << "," << e.horizontal.kernel
             << " stride " << e.vertical.stride << "," << e.horizontal.stride << " dilation "
             << e.vertical.dilation << "," << e.horizontal.dilation);
  std::mt19937 random(7);
  const auto x = random_values<T>(std::int64_t{e.in_channels} * e.input_size(), random);
  const auto w = random_values<T>(std::int64_t{e.out_channels} * e.in_channels * e.taps(), random);
  const auto expected = reference(e, x, w, Pool == pooling::maximum_2x2);
  const convolution_extents padded = without_padding(e);
  // Exactly as long as the padded image, so that the sanitizer sees a read beyond it.
  std::vector<T> image(static_cast<std::size_t>(e.in_channels * padded.input_size()),
                       std::numeric_limits<T>::quiet_NaN());
  pad_image(e, x.data(), image.data());
  const int columns = pooled<Pool>(e.vertical.output()) * pooled<Pool>(e.horizontal.output());
  const double depth = double(e.in_channels) * e.taps();
  if (e.horizontal.stride == 1) {
    compare<T>(expected, columns, depth, convolution_pixels_units<Pool>(padded),
               [&](const auto& sink, work_range units) {
                 convolution_pixels<Pool>(padded, image.data(), w.data(), sink, units);
               });
  }
  std::vector<T> packed(static_cast<std::size_t>(packed_channels_size<T>(e)),
                        std::numeric_limits<T>::quiet_NaN());
  pack_channels(e, w.data(), packed.data());
  compare<T>(expected, columns, depth, convolution_channels_units<Pool, T>(padded),
             [&](const auto& sink, work_range units) {
               convolution_channels<Pool>(padded, image.data(), packed.data(), sink, units);
             });
}

}  // namespace

TEST_CASE_TEMPLATE("one image equals the definition, pooled or not, for odd shapes", T, float,
                   double) {
  std::vector<convolution_extents> all{
      {1, 1, 6, 1, {28, 5, 1, 2, 2, 1}, {28, 5, 1, 2, 2, 1}},
      {1, 6, 16, 1, {14, 5}, {14, 5}},
      {1, 1, 1, 1, {2, 1}, {2, 1}},
      {1, 3, 17, 1, {9, 3, 2, 1, 0, 1}, {9, 3, 2, 0, 1, 1}},
      {1, 2, 7, 1, {10, 3, 1, 2, 2, 2}, {40, 3, 1, 2, 2, 2}},
      {1, 2, 5, 1, {11, 3, 2}, {11, 3, 1}},
      {1, 2, 33, 1, {7, 1, 3}, {23, 2, 2}},
  };
  for (int columns = 2; columns <= 2 * lanes<T> + 5; ++columns) {
    all.push_back({1, 2, 1 + columns % 13, 1, {6, 3}, {columns + 2, 3}});
  }
  for (const auto& e : all) {
    check<pooling::none, T>(e);
    check<pooling::maximum_2x2, T>(e);
  }
}

TEST_CASE("an output of one row or column leaves nothing to pool") {
  const convolution_extents e{1, 1, 3, 1, {5, 5}, {9, 3}};
  CHECK(convolution_pixels_units<pooling::maximum_2x2>(e) == 0);
  CHECK(convolution_channels_units<pooling::maximum_2x2, float>(e) == 0);
}
