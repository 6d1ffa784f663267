#include <doctest/doctest.h>

#include <algorithm>
#include <cella/backend/cpu/convolution/implicit_gemm.hpp>
#include <cella/backend/cpu/convolution/input_gradient.hpp>
#include <cella/backend/cpu/convolution/weight_gradient.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <random>
#include <vector>

using namespace cella;
using namespace cella::cpu;

namespace {

constexpr std::size_t guard = 40;

template <class T>
constexpr T poison = std::numeric_limits<T>::quiet_NaN();

template <class T>
struct scratch_space {
  std::unique_ptr<std::byte, void (*)(void*)> bytes;
  explicit scratch_space(std::int64_t size)
      : bytes(static_cast<std::byte*>(::operator new (std::size_t(size), std::align_val_t{64})),
              [](void* p) { ::operator delete (p, std::align_val_t{64}); }) {
    const T nan = poison<T>;
    for (std::size_t i = 0; i + sizeof(T) <= std::size_t(size); i += sizeof(T)) {
      std::memcpy(bytes.get() + i, &nan, sizeof(T));
    }
  }
};

template <class T>
std::vector<T> random_values(std::int64_t size, std::mt19937& random) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<T> values(static_cast<std::size_t>(size));
  for (T& v : values) v = static_cast<T>(uniform(random));
  return values;
}

/// Remembers how often every element was handed over, and with which row and column.
template <class T>
struct recorder {
  T* target;
  int* visits;
  int rows, columns;  // of one sample; offsets must agree with row and column
  int* disagreements;
  void operator()(vec<T> value, std::int64_t offset, int row, int column, int count) const {
    store_first(target + offset, count, value);
    for (int i = 0; i < count; ++i) ++visits[offset + i];
    const std::int64_t expected = std::int64_t{row} * columns + column;
    if (offset % (std::int64_t{rows} * columns) != expected) ++*disagreements;
    if (count < 1 || column + count > columns) ++*disagreements;
  }
};

/// The three results of a convolution by their definitions, in double precision.
template <class T>
struct reference {
  std::vector<double> y, dx, dw;
  reference(const convolution_extents& e, const std::vector<T>& x, const std::vector<T>& w,
            const std::vector<T>& dy)
      : y(dy.size(), 0), dx(x.size(), 0), dw(w.size(), 0) {
    const auto &v = e.vertical, &h = e.horizontal;
    const int oh = v.output(), ow = h.output(), gi = e.group_inputs(), go = e.group_outputs();
    for (int n = 0; n < e.samples; ++n) {
      for (int o = 0; o < e.out_channels; ++o) {
        for (int c = 0; c < gi; ++c) {
          for (int kh = 0; kh < v.kernel; ++kh) {
            for (int kw = 0; kw < h.kernel; ++kw) {
              for (int i = 0; i < oh; ++i) {
                for (int j = 0; j < ow; ++j) {
                  const int r = i * v.stride - v.padding_before + kh * v.dilation;
                  const int q = j * h.stride - h.padding_before + kw * h.dilation;
                  if (r < 0 || r >= v.size || q < 0 || q >= h.size) continue;
                  const auto at_x = static_cast<std::size_t>(
                      ((n * e.in_channels + o / go * gi + c) * v.size + r) * h.size + q);
                  const auto at_w =
                      static_cast<std::size_t>(((o * gi + c) * v.kernel + kh) * h.kernel + kw);
                  const auto at_y =
                      static_cast<std::size_t>(((n * e.out_channels + o) * oh + i) * ow + j);
                  y[at_y] += double{x[at_x]} * double{w[at_w]};
                  dx[at_x] += double{dy[at_y]} * double{w[at_w]};
                  dw[at_w] += double{dy[at_y]} * double{x[at_x]};
                }
              }
            }
          }
        }
      }
    }
  }
};

template <class T, class Run>
void compare(const std::vector<double>& expected, int rows, int columns, double depth, int units,
             std::int64_t scratch_size, int parts, Run&& run) {
  std::vector<T> found(expected.size() + 2 * guard, poison<T>);
  std::vector<int> visits(expected.size(), 0);
  int disagreements = 0;
  const recorder<T> sink{found.data() + guard, visits.data(), rows, columns, &disagreements};
  for (int i = 0; i < parts; ++i) {
    const scratch_space<T> scratch(scratch_size);
    run(sink, scratch.bytes.get(), part_of(units, parts, i));
  }
  const double tolerance = std::numeric_limits<T>::epsilon() * (8 + depth);
  int wrong = 0, touched = 0, missed = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double error = std::abs(double{found[guard + i]} - expected[i]);
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
  // The sink that only stores takes another way.
  std::vector<T> stored(expected.size() + 2 * guard, poison<T>);
  const scratch_space<T> scratch(scratch_size);
  run(store_to<T>{stored.data() + guard}, scratch.bytes.get(), work_range{0, units});
  CHECK(std::memcmp(stored.data() + guard, found.data() + guard, expected.size() * sizeof(T)) == 0);
}

template <class T>
void check(const convolution_extents& e, int parts = 1) {
  std::mt19937 random(static_cast<unsigned>(e.in_channels * 31 + e.out_channels));
  const auto x = random_values<T>(std::int64_t{e.samples} * e.in_channels * e.input_size(), random);
  const auto w =
      random_values<T>(std::int64_t{e.out_channels} * e.group_inputs() * e.taps(), random);
  const auto dy =
      random_values<T>(std::int64_t{e.samples} * e.out_channels * e.output_size(), random);
  const reference<T> expected(e, x, w, dy);
  const auto &v = e.vertical, &h = e.horizontal;
  INFO("x [" << e.samples << "," << e.in_channels << "," << v.size << "," << h.size << "] out "
             << e.out_channels << " kernel " << v.kernel << "," << h.kernel << " stride "
             << v.stride << "," << h.stride << " padding " << v.padding_before << ","
             << v.padding_after << "," << h.padding_before << "," << h.padding_after << " dilation "
             << v.dilation << "," << h.dilation << " groups " << e.groups << " parts " << parts);
  const double taps = e.taps();
  if (!expected.y.empty()) {
    compare<T>(expected.y, e.out_channels, e.output_size(), e.group_inputs() * taps,
               convolution_units<T>(e), convolution_scratch<T>(e), parts,
               [&](const auto& sink, std::byte* scratch, work_range units) {
                 convolution(e, x.data(), w.data(), sink, scratch, units);
               });
  }
  compare<T>(expected.dx, e.in_channels, e.input_size(), e.group_outputs() * taps,
             convolution_input_gradient_units<T>(e), convolution_input_gradient_scratch<T>(e),
             parts, [&](const auto& sink, std::byte* scratch, work_range units) {
               convolution_input_gradient(e, w.data(), dy.data(), sink, scratch, units);
             });
  compare<T>(expected.dw, e.out_channels, e.group_inputs() * e.taps(),
             double(e.samples) * e.output_size(), convolution_weight_gradient_units<T>(e),
             convolution_weight_gradient_scratch<T>(e), parts,
             [&](const auto& sink, std::byte* scratch, work_range units) {
               convolution_weight_gradient(e, x.data(), dy.data(), sink, scratch, units);
             });
}

}  // namespace

TEST_CASE_TEMPLATE("a convolution and its gradients equal their definitions", T, float, double) {
  const convolution_extents all[]{
      {2, 1, 6, 1, {28, 5, 1, 2, 2, 1}, {28, 5, 1, 2, 2, 1}},
      {2, 6, 16, 1, {14, 5}, {14, 5}},
      {1, 1, 1, 1, {}, {}},
      {3, 4, 5, 1, {1, 1}, {1, 1}},
      {2, 7, 17, 1, {9, 1}, {11, 1}},
      {1, 3, 20, 1, {17, 3, 2, 1, 1, 1}, {17, 3, 2, 1, 1, 1}},
      {2, 5, 3, 1, {13, 3, 3, 0, 2, 1}, {19, 5, 2, 3, 0, 1}},
      {1, 2, 3, 1, {20, 3, 1, 2, 2, 2}, {23, 3, 2, 1, 4, 3}},
      {2, 8, 12, 4, {10, 3, 1, 1, 1, 1}, {10, 3, 1, 1, 1, 1}},
      {2, 9, 9, 9, {12, 3, 2, 1, 0, 1}, {12, 3, 2, 0, 1, 1}},
      {1, 6, 4, 2, {7, 7}, {7, 7}},
      {1, 2, 33, 1, {40, 1, 2}, {37, 1, 3}},
      {1, 20, 31, 1, {16, 3, 1, 1, 1, 1}, {33, 3, 1, 1, 1, 1}},
  };
  for (const auto& e : all) {
    check<T>(e);
    check<T>(e, 3);
  }
}

TEST_CASE_TEMPLATE("every stride, padding and dilation of a small convolution is right", T, float,
                   double) {
  for (int stride : {1, 2, 3, 4}) {
    for (int before : {0, 1, 3}) {
      for (int after : {0, 2}) {
        for (int dilation : {1, 2, 3}) {
          for (int kernel : {1, 2, 3}) {
            const convolution_axis tested{11, kernel, stride, before, after, dilation};
            const convolution_axis other{9, 2, 1, 1, 0, 1};
            check<T>({1, 2, 3, 1, tested, other});
            check<T>({2, 2, 3, 1, other, tested});
            check<T>({1, 4, 2, 2, tested, tested});
          }
        }
      }
    }
  }
}

TEST_CASE_TEMPLATE("padding wider than the kernel's reach crops the gradient", T, float, double) {
  check<T>({1, 2, 2, 1, {4, 2, 1, 3, 4, 1}, {5, 1, 1, 2, 2, 1}});
  check<T>({1, 2, 2, 1, {4, 1, 2, 3, 3, 1}, {5, 1, 3, 2, 5, 1}});
  check<T>({1, 2, 2, 1, {2, 1, 5, 1, 1, 1}, {1, 2, 3, 1, 1, 2}});
}

TEST_CASE_TEMPLATE("wide convolutions are packed and summed in passes without loss", T, float,
                   double) {
  check<T>({1, 100, 61, 1, {11, 3, 1, 1, 1, 1}, {31, 3, 1, 1, 1, 1}}, 2);
  check<T>({2, 61, 33, 1, {23, 3, 1, 1, 1, 1}, {21, 1}}, 2);
}

TEST_CASE("a kernel larger than its padded input leaves no output and a zero gradient") {
  const convolution_extents e{2, 3, 4, 1, {3, 5}, {9, 3}};
  CHECK(e.output_size() == 0);
  CHECK(convolution_units<float>(e) == 0);
  check<float>(e);
}

TEST_CASE("no samples: no output, and a weight gradient of zeros") {
  const convolution_extents e{0, 3, 4, 1, {6, 3}, {6, 3}};
  CHECK(convolution_units<float>(e) == 0);
  CHECK(convolution_input_gradient_units<float>(e) == 0);
  check<float>(e);
}
