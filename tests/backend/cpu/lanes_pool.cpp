#include <doctest/doctest.h>

#include <cella/backend/cpu/lanes_pool.hpp>

#include "lanes_reference.hpp"

using namespace cella;
using namespace cella::cpu;
using namespace reference;

namespace {

const std::vector<lanes_pool_extents> pools{
    {0, 3, 6, 6, 2, 2, 2, 2, 0, 0}, {0, 2, 7, 9, 3, 3, 2, 2, 1, 1}, {0, 1, 5, 5, 5, 5, 1, 1, 0, 0},
    {0, 5, 8, 7, 3, 2, 1, 2, 1, 0}, {0, 2, 9, 4, 2, 4, 3, 1, 1, 2}, {0, 1, 16, 16, 16, 16, 1, 1},
};

/// f(window's plane and output index, index in x, position in the window) for elements inside x.
template <class F>
void for_each_cell(const lanes_pool_extents& e, int planes, F f) {
  for (int p = 0; p < planes; ++p) {
    for (int i = 0; i < e.out_height(); ++i) {
      for (int j = 0; j < e.out_width(); ++j) {
        for (int k = 0; k < e.window_height * e.window_width; ++k) {
          const int row = i * e.stride_height + k / e.window_width - e.padding_height;
          const int column = j * e.stride_width + k % e.window_width - e.padding_width;
          if (row < 0 || row >= e.height || column < 0 || column >= e.width) continue;
          f(static_cast<std::size_t>((p * e.out_height() + i) * e.out_width() + j),
            static_cast<std::size_t>((p * e.height + row) * e.width + column), k);
        }
      }
    }
  }
}

template <class T>
void check_near(const aligned<T>& a, const aligned<T>& b) {
  REQUIRE(a.size() == b.size());
  T worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(std::isfinite(a[i]));
    worst = std::max(worst, std::abs(a[i] - b[i]));
  }
  CHECK(worst <= 8 * std::numeric_limits<T>::epsilon());
}

}  // namespace

TEST_CASE_TEMPLATE("max pooling and its gradient agree with plain loops", T, float, double) {
  for (auto e : pools) {
    for (int n : batches<T>()) {
      e.blocks = lane_blocks<T>(n);
      const int rows = e.out_height(), columns = e.out_width(), planes = n * e.channels;
      CAPTURE(n);
      CAPTURE(e.window_height);
      CAPTURE(e.window_width);
      const auto x = integers<T>(planes * e.height * e.width, 1);
      const auto d = integers<T>(planes * rows * columns, 2);
      aligned<T> y(d.size(), -std::numeric_limits<T>::infinity()), dx(x.size(), T{0});
      std::vector<std::size_t> best(d.size());
      for_each_cell(e, planes, [&](std::size_t o, std::size_t i, int) {
        if (x[i] > y[o]) y[o] = x[i], best[o] = i;
      });
      for (std::size_t o = 0; o < d.size(); ++o) dx[best[o]] += d[o];

      const auto x_lanes = to_lanes<T>(x, n, e.channels, e.height, e.width, 0, 0, poison<T>);
      const auto d_lanes = to_lanes<T>(d, n, e.channels, rows, columns, 0, 0, poison<T>);
      aligned<T> got_y(d_lanes.size(), poison<T>), got_dx(x_lanes.size(), poison<T>);
      std::vector<std::uint8_t> index(d_lanes.size(), 255);
      run(lanes_pool_units(e), 3, [&](work_range r) {
        lanes_max_pool(r, e, x_lanes.data(), index.data(), store_lanes<T>{got_y.data()});
      });
      run(lanes_pool_units(e), 3, [&](work_range r) {
        lanes_max_pool_gradient(r, e, d_lanes.data(), index.data(), got_dx.data());
      });
      CHECK(from_lanes(got_y, n, e.channels, rows, columns) == y);
      CHECK(from_lanes(got_dx, n, e.channels, e.height, e.width) == dx);
    }
  }
}

TEST_CASE_TEMPLATE("average pooling and its gradient agree with plain loops", T, float, double) {
  for (auto e : pools) {
    for (int n : batches<T>()) {
      for (pool_padding padding : {pool_padding::counted, pool_padding::ignored}) {
        e.blocks = lane_blocks<T>(n);
        const int rows = e.out_height(), columns = e.out_width(), planes = n * e.channels;
        const auto x = integers<T>(planes * e.height * e.width, 1);
        const auto d = integers<T>(planes * rows * columns, 2);
        aligned<T> y(d.size(), T{0}), dx(x.size(), T{0}), count(d.size(), T{0});
        for_each_cell(e, planes, [&](std::size_t o, std::size_t i, int) {
          y[o] += x[i];
          count[o] += 1;
        });
        if (padding == pool_padding::counted) {
          count.assign(d.size(), static_cast<T>(e.window_height * e.window_width));
        }
        for (std::size_t o = 0; o < d.size(); ++o) y[o] /= count[o];
        for_each_cell(e, planes,
                      [&](std::size_t o, std::size_t i, int) { dx[i] += d[o] / count[o]; });

        const auto x_lanes = to_lanes<T>(x, n, e.channels, e.height, e.width, 0, 0, poison<T>);
        const auto d_lanes = to_lanes<T>(d, n, e.channels, rows, columns, 0, 0, poison<T>);
        aligned<T> got_y(d_lanes.size(), poison<T>), got_dx(x_lanes.size(), poison<T>);
        run(lanes_pool_units(e), 2, [&](work_range r) {
          lanes_average_pool(r, e, padding, x_lanes.data(), store_lanes<T>{got_y.data()});
          lanes_average_pool_gradient(r, e, padding, d_lanes.data(), got_dx.data());
        });
        check_near(from_lanes(got_y, n, e.channels, rows, columns), y);
        check_near(from_lanes(got_dx, n, e.channels, e.height, e.width), dx);
      }
    }
  }
}

TEST_CASE_TEMPLATE("global average pooling is the mean of a plane", T, float, double) {
  const int channels = 5;
  for (int pixels : {1, 4, 49}) {
    for (int n : batches<T>()) {
      const auto x = integers<T>(n * channels * pixels, 1), d = integers<T>(n * channels, 2);
      aligned<T> y(d.size(), T{0}), dx(x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t plane = i / static_cast<std::size_t>(pixels);
        y[plane] += x[i];
        dx[i] = d[plane] / static_cast<T>(pixels);
      }
      for (auto& v : y) v /= static_cast<T>(pixels);
      const int units = lane_blocks<T>(n) * channels;
      const auto x_lanes = to_lanes<T>(x, n, channels, 1, pixels, 0, 0, poison<T>);
      const auto d_lanes = to_lanes<T>(d, n, channels, 1, 1, 0, 0, poison<T>);
      aligned<T> got_y(d_lanes.size(), poison<T>), got_dx(x_lanes.size(), poison<T>);
      run(units, 2, [&](work_range r) {
        lanes_global_average_pool(r, channels, pixels, x_lanes.data(),
                                  store_lanes<T>{got_y.data()});
        lanes_global_average_pool_gradient(r, channels, pixels, d_lanes.data(),
                                           store_lanes<T>{got_dx.data()});
      });
      check_near(from_lanes(got_y, n, channels, 1, 1), y);
      check_near(from_lanes(got_dx, n, channels, 1, pixels), dx);
    }
  }
}
