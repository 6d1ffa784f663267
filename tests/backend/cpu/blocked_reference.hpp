// Convolutions of plain images in double precision, and images in blocks of channels, for the tests
// of the kernels in blocks.
#pragma once

#include <doctest/doctest.h>

#include <cella/backend/cpu/blocked/layout.hpp>
#include <cella/backend/host/buffer.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace cella::test {

using namespace cella::cpu;

/// Aligned elements, NaN until they are written.
template <class T>
struct aligned {
  aligned_buffer bytes;
  std::int64_t size;
  explicit aligned(std::int64_t n) : bytes(std::size_t(n) * sizeof(T) + 64), size(n) {
    std::fill_n(data(), n, std::numeric_limits<T>::quiet_NaN());
  }
  T* data() const { return reinterpret_cast<T*>(bytes.data()); }
  T& operator[](std::int64_t i) const { return data()[i]; }
};

template <class T>
aligned<T> random_aligned(std::int64_t n, std::mt19937& random) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  aligned<T> a(n);
  for (std::int64_t i = 0; i < n; ++i) a[i] = static_cast<T>(uniform(random));
  return a;
}

/// Where element (sample, channel, pixel) of an image of `channels` lies in blocks.
template <class T>
std::int64_t in_blocks(int channels, int pixels, int n, int c, int p) {
  constexpr int L = lanes<T>;
  return ((std::int64_t{n} * (channels / L) + c / L) * pixels + p) * L + c % L;
}

/// Calls f(image element (n, c, pixel), filter element, result (n, o, pixel)) for each product.
template <class F>
void for_each_product(const blocked_convolution_extents& e, int in, int out, F f) {
  for (int n = 0; n < e.samples; ++n) {
    for (int o = 0; o < out; ++o) {
      for (int i = 0; i < e.out_height; ++i) {
        for (int j = 0; j < e.out_width; ++j) {
          for (int c = 0; c < in; ++c) {
            for (int k = 0; k < e.taps(); ++k) {
              const int row = i * e.stride_vertical - e.padding_top + k / e.kernel_width;
              const int column = j * e.stride_horizontal - e.padding_left + k % e.kernel_width;
              if (row < 0 || row >= e.height || column < 0 || column >= e.width) continue;
              f(n, c, row * e.width + column, (std::int64_t{o} * in + c) * e.taps() + k, o,
                i * e.out_width + j);
            }
          }
        }
      }
    }
  }
}

constexpr blocked_convolution_extents square(int samples, int in_blocks, int size, int out_blocks,
                                             int kernel, int stride, int padding) {
  const int out = (size + 2 * padding - kernel) / stride + 1;
  return {samples, in_blocks, size,    size,    out_blocks, kernel, kernel,
          stride,  stride,    padding, padding, out,        out};
}

/// Runs `units` units in three parts.
template <class F>
void in_parts(int units, F f) {
  for (int k = 0; k < 3; ++k) f(part_of(units, 3, k));
}

/// Stores vectors of blocks.
template <class T>
struct store_blocks {
  T* to;
  void operator()(vec<T> v, std::int64_t element, int) const { store(to + element * lanes<T>, v); }
};
/// Adds them to what is there.
template <class T>
struct add_blocks {
  T* target;
  void operator()(vec<T> value, std::int64_t element, int) const {
    T* const to = target + element * lanes<T>;
    store(to, load(to) + value);
  }
};
/// Stores runs of a plain tensor.
template <class T>
struct store_runs {
  T* to;
  void operator()(vec<T> v, std::int64_t offset, int count) const {
    store_first(to + offset, count, v);
  }
};

/// Largest difference, relative to the largest expected value.
template <class T, class At>
double worst(const std::vector<double>& expected, At at) {
  double most = 1e-30, error = 0;
  for (double v : expected) most = std::max(most, std::abs(v));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double d = std::abs(double(at(std::int64_t(i))) - expected[i]);
    if (!(d <= error)) error = std::isfinite(d) ? d : 1e9;
  }
  return error / most;
}

}  // namespace cella::test
