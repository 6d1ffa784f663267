// Independent truth for the kernels on lanes: the layout and the convolution as plain loops. Values
// are small integers, so that every sum is exact in any order and ties are frequent.
#pragma once

#include <cella/backend/cpu/lanes/convolution.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>
#include <xsimd/xsimd.hpp>

namespace reference {

template <class T>
using aligned = std::vector<T, xsimd::aligned_allocator<T, 64>>;

template <class T>
constexpr T poison = std::numeric_limits<T>::quiet_NaN();

template <class T>
aligned<T> integers(std::int64_t n, unsigned seed, int most = 3) {
  std::mt19937 random(seed);
  const auto span = static_cast<unsigned>(2 * most + 1);
  aligned<T> values(static_cast<std::size_t>(n));
  for (auto& v : values) v = static_cast<T>(static_cast<int>(random() % span) - most);
  return values;
}

/// Plain [N][C][H][W] -> [blocks][C][H + 2 ph][W + 2 pw][L]; `dead` fills the lanes beyond N.
template <class T>
aligned<T> to_lanes(const aligned<T>& x, int n, int c, int h, int w, int ph, int pw, T dead) {
  const int L = cella::cpu::lanes<T>, blocks = (n + L - 1) / L, height = h + 2 * ph,
            width = w + 2 * pw;
  aligned<T> y(static_cast<std::size_t>(blocks * c * height * width * L), T{0});
  std::size_t at = 0;
  for (int b = 0; b < blocks; ++b) {
    for (int k = 0; k < c; ++k) {
      for (int i = 0; i < height; ++i) {
        for (int j = 0; j < width; ++j) {
          for (int lane = 0; lane < L; ++lane, ++at) {
            const int sample = b * L + lane, row = i - ph, column = j - pw;
            const bool border = row < 0 || row >= h || column < 0 || column >= w;
            if (sample >= n) {
              y[at] = dead;
            } else if (!border) {
              y[at] = x[static_cast<std::size_t>(((sample * c + k) * h + row) * w + column)];
            }
          }
        }
      }
    }
  }
  return y;
}

/// The way back, without a border.
template <class T>
aligned<T> from_lanes(const aligned<T>& y, int n, int c, int h, int w) {
  const int L = cella::cpu::lanes<T>, size = c * h * w;
  aligned<T> x(static_cast<std::size_t>(n * size));
  for (int s = 0; s < n; ++s) {
    for (int i = 0; i < size; ++i) {
      x[static_cast<std::size_t>(s * size + i)] =
          y[static_cast<std::size_t>((s / L * size + i) * L + s % L)];
    }
  }
  return x;
}

/// Visits every product of a convolution: f(index in x [N][C][H][W], in w [O][C][KH][KW], in z).
template <class F>
void for_each_product(const cella::cpu::lanes_convolution_extents& e, int n, F f) {
  const int oh = e.out_height(), ow = e.out_width();
  for (int s = 0; s < n; ++s) {
    for (int o = 0; o < e.out_channels; ++o) {
      for (int i = 0; i < oh; ++i) {
        for (int j = 0; j < ow; ++j) {
          for (int c = 0; c < e.in_channels; ++c) {
            for (int kh = 0; kh < e.kernel_height; ++kh) {
              for (int kw = 0; kw < e.kernel_width; ++kw) {
                const int row = i * e.stride_height + kh - e.padding_height;
                const int column = j * e.stride_width + kw - e.padding_width;
                if (row < 0 || row >= e.height || column < 0 || column >= e.width) continue;
                f(static_cast<std::size_t>(((s * e.in_channels + c) * e.height + row) * e.width +
                                           column),
                  static_cast<std::size_t>(
                      ((o * e.in_channels + c) * e.kernel_height + kh) * e.kernel_width + kw),
                  static_cast<std::size_t>(((s * e.out_channels + o) * oh + i) * ow + j));
              }
            }
          }
        }
      }
    }
  }
}

/// 2x2 max pooling of z [planes][h][w]: the maxima and the corners (0 .. 3) of the first maximum.
template <class T>
struct pooled {
  aligned<T> value;
  std::vector<int> corner;
};
template <class T>
pooled<T> pool(const aligned<T>& z, int planes, int h, int w) {
  pooled<T> result;
  for (int p = 0; p < planes; ++p) {
    for (int i = 0; i + 1 < h; i += 2) {
      for (int j = 0; j + 1 < w; j += 2) {
        const auto at = [&](int corner) {
          return z[static_cast<std::size_t>((p * h + i + corner / 2) * w + j + corner % 2)];
        };
        int best = 0;
        for (int corner = 1; corner < 4; ++corner) {
          if (at(corner) > at(best)) best = corner;
        }
        result.value.push_back(at(best));
        result.corner.push_back(best);
      }
    }
  }
  return result;
}

/// Runs `kernel(work_range)` over all units, in one piece or in three, the last first.
template <class Kernel>
void run(int units, int parts, Kernel kernel) {
  for (int i = parts; i-- > 0;) kernel(cella::part_of(units, parts, i));
}

/// Batches that end in the first lane, before, at and behind a full vector, and in the third.
template <class T>
std::vector<int> batches() {
  const int L = cella::cpu::lanes<T>;
  return {1, L - 1, L, L + 1, 2 * L + 3};
}

struct convolution_case {
  int in_channels, height, width, out_channels, kernel_height, kernel_width;
  int stride_height{1}, stride_width{1}, padding_height{}, padding_width{};

  cella::cpu::lanes_convolution_extents extents(int blocks) const {
    return {blocks,       in_channels,   height,       width,          out_channels, kernel_height,
            kernel_width, stride_height, stride_width, padding_height, padding_width};
  }
};

/// Channels and extents around the tiles' edges, square and other filters, strides, paddings.
inline const std::vector<convolution_case>& convolution_cases() {
  static const std::vector<convolution_case> cases{
      {1, 8, 8, 6, 5, 5, 1, 1, 2, 2},
      {6, 9, 10, 16, 5, 5},
      {3, 7, 9, 17, 3, 3, 1, 1, 1, 1},
      {17, 4, 5, 3, 3, 3, 1, 1, 1, 1},
      {1, 5, 5, 1, 5, 5},
      {3, 6, 11, 1, 1, 1},
      {6, 5, 5, 17, 1, 1},
      {5, 3, 4, 6, 1, 1, 2, 2},
      {3, 9, 9, 5, 7, 7, 1, 1, 3, 3},
      {2, 8, 13, 3, 3, 5, 1, 1, 1, 2},
      {2, 13, 8, 3, 5, 3, 1, 1, 0, 1},
      {3, 9, 7, 2, 3, 1, 1, 1, 1, 0},
      {3, 7, 9, 2, 1, 3, 1, 1, 0, 1},
      {1, 12, 14, 2, 2, 4},
      {1, 13, 13, 2, 11, 11, 1, 1, 2, 2},
      {3, 9, 9, 6, 3, 3, 2, 2, 1, 1},
      {1, 11, 12, 3, 5, 5, 3, 3, 2, 2},
      {2, 10, 9, 4, 5, 3, 2, 3, 2, 1},
      {2, 12, 12, 3, 8, 9, 2, 1, 3, 4},
      {4, 6, 6, 4, 2, 2, 2, 2},
      {2, 3, 2, 2, 3, 3, 1, 1, 2, 2},
      {2, 9, 9, 3, 1, 1, 3, 3},
  };
  return cases;
}

/// Calls `f(std::integral_constant<int, K>)` with K = 0 and with the width, if that is 3 or 5.
template <class F>
void for_each_width(const cella::cpu::lanes_convolution_extents& e, F f) {
  f(std::integral_constant<int, 0>{});
  if (e.kernel_width == 3) f(std::integral_constant<int, 3>{});
  if (e.kernel_width == 5) f(std::integral_constant<int, 5>{});
}

}  // namespace reference
