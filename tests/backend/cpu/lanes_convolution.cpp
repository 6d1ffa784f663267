#include <doctest/doctest.h>

#include <cella/backend/cpu/lanes/convolution.hpp>

#include "lanes_reference.hpp"

using namespace cella;
using namespace cella::cpu;
using namespace reference;

namespace {

/// Stores, and counts how often each element was given.
template <class T>
struct counting_sink {
  T* to;
  int* count;
  int channels;
  std::int64_t plane;
  bool* channel_right;
  void operator()(vec<T> value, std::int64_t element, int channel) const {
    store(to + element * lanes<T>, value);
    ++count[element];
    if (element / plane % channels != channel) *channel_right = false;
  }
};

std::string describe(const lanes_convolution_extents& e, int n) {
  std::string text = "N " + std::to_string(n);
  for (int v : {e.in_channels, e.height, e.width, e.out_channels, e.kernel_height, e.kernel_width,
                e.stride_height, e.stride_width, e.padding_height, e.padding_width}) {
    text += ' ';
    text += std::to_string(v);
  }
  return text;
}

template <class T>
struct problem {
  int n;
  lanes_convolution_extents e;
  aligned<T> x, w, z, dz, dx;
  std::size_t x_size, w_size, z_size;

  problem(const convolution_case& c, int samples)
      : n(samples), e(c.extents(lane_blocks<T>(samples))) {
    x = integers<T>(std::int64_t{n} * e.in_channels * e.height * e.width, 1);
    w = integers<T>(std::int64_t{e.out_channels} * e.in_channels * e.taps(), 2);
    dz = integers<T>(n * e.out_channels * e.out_plane(), 3);
    z.assign(dz.size(), T{0});
    dx.assign(x.size(), T{0});
    for_each_product(e, n, [&](std::size_t i, std::size_t k, std::size_t o) {
      z[o] += x[i] * w[k];
      dx[i] += dz[o] * w[k];
    });
  }
};

}  // namespace

TEST_CASE_TEMPLATE("convolution on lanes agrees with plain loops", T, float, double) {
  for (const auto& c : convolution_cases()) {
    for (int n : batches<T>()) {
      const problem<T> p(c, n);
      CAPTURE(describe(p.e, n));
      const auto x = to_lanes<T>(p.x, n, p.e.in_channels, p.e.height, p.e.width, p.e.padding_height,
                                 p.e.padding_width, poison<T>);
      const std::int64_t elements = p.e.blocks * p.e.out_channels * p.e.out_plane();
      for_each_width(p.e, [&](auto K) {
        if (K > 0 && p.e.stride_width > 1) return;
        for (int parts : {1, 3}) {
          aligned<T> y(static_cast<std::size_t>(elements * lanes<T>), poison<T>);
          std::vector<int> count(static_cast<std::size_t>(elements));
          bool channel_right = true;
          run(lanes_convolution_units(p.e), parts, [&](work_range r) {
            lanes_convolution<K()>(r, p.e, x.data(), p.w.data(),
                                   counting_sink<T>{y.data(), count.data(), p.e.out_channels,
                                                    p.e.out_plane(), &channel_right});
          });
          CHECK(from_lanes(y, n, p.e.out_channels, p.e.out_height(), p.e.out_width()) == p.z);
          CHECK(std::all_of(count.begin(), count.end(), [](int k) { return k == 1; }));
          CHECK(channel_right);
        }
      });
    }
  }
}

TEST_CASE_TEMPLATE("pooled convolution gives maxima and their first corners", T, float, double) {
  for (const auto& c : convolution_cases()) {
    for (int n : batches<T>()) {
      const problem<T> p(c, n);
      const auto& e = p.e;
      CAPTURE(describe(e, n));
      const auto x = to_lanes<T>(p.x, n, e.in_channels, e.height, e.width, e.padding_height,
                                 e.padding_width, T{0});
      const auto expected = pool(p.z, n * e.out_channels, e.out_height(), e.out_width());
      const std::int64_t elements = e.blocks * e.out_channels * e.pooled_plane();
      for_each_width(e, [&](auto K) {
        if (K > 0 && e.stride_width > 1) return;
        aligned<T> y(static_cast<std::size_t>(elements * lanes<T>), poison<T>);
        std::vector<std::uint16_t> corners(static_cast<std::size_t>(elements) * 4, 0xffff);
        run(lanes_convolution_pool_units(e), 3, [&](work_range r) {
          lanes_convolution_pool<K()>(r, e, x.data(), p.w.data(),
                                      store_pooled_lanes<T>{y.data(), corners.data()});
        });
        CHECK(from_lanes(y, n, e.out_channels, e.pooled_height(), e.pooled_width()) ==
              expected.value);
        const int size = static_cast<int>(e.out_channels * e.pooled_plane());
        int wrong = 0;
        for (int s = 0; s < n; ++s) {
          for (int i = 0; i < size; ++i) {
            for (int k = 0; k < 4; ++k) {
              const std::uint16_t bits =
                  corners[static_cast<std::size_t>((s / lanes<T> * size + i) * 4 + k)];
              wrong += (bits >> s % lanes<T> & 1) !=
                       (expected.corner[static_cast<std::size_t>(s * size + i)] == k);
              wrong += bits > first_bits(lanes<T>);
            }
          }
        }
        CHECK(wrong == 0);
      });
    }
  }
}

TEST_CASE_TEMPLATE("input gradient on lanes agrees with plain loops", T, float, double) {
  for (const auto& c : convolution_cases()) {
    for (int n : batches<T>()) {
      const problem<T> p(c, n);
      CAPTURE(describe(p.e, n));
      const auto dz = to_lanes<T>(p.dz, n, p.e.out_channels, p.e.out_height(), p.e.out_width(), 0,
                                  0, poison<T>);
      const std::int64_t plane = std::int64_t{p.e.height} * p.e.width;
      const std::int64_t elements = p.e.blocks * p.e.in_channels * plane;
      for (int parts : {1, 3}) {
        aligned<T> dx(static_cast<std::size_t>(elements * lanes<T>), poison<T>);
        std::vector<int> count(static_cast<std::size_t>(elements));
        bool channel_right = true;
        run(lanes_convolution_input_gradient_units(p.e), parts, [&](work_range r) {
          lanes_convolution_input_gradient(
              r, p.e, dz.data(), p.w.data(),
              counting_sink<T>{dx.data(), count.data(), p.e.in_channels, plane, &channel_right});
        });
        CHECK(from_lanes(dx, n, p.e.in_channels, p.e.height, p.e.width) == p.dx);
        CHECK(std::all_of(count.begin(), count.end(), [](int k) { return k == 1; }));
        CHECK(channel_right);
      }
    }
  }
}

namespace {

/// The three kernels compiled for the tiles of `E` only, against the same with all tiles.
template <lanes_convolution_extents E, class T>
void check_own_tiles() {
  constexpr auto forward = lanes_convolution_tiles(E);
  constexpr auto pooled = lanes_convolution_pool_tiles(E);
  constexpr auto backward = lanes_convolution_input_gradient_tiles(E);
  constexpr int L = lanes<T>;
  const auto x = integers<T>(E.blocks * E.in_channels * E.padded_plane() * L, 1);
  const auto w = integers<T>(std::int64_t{E.out_channels} * E.in_channels * E.taps(), 2);
  const auto dz = integers<T>(E.blocks * E.out_channels * E.out_plane() * L, 3);

  aligned<T> all(dz.size(), poison<T>), own = all;
  const work_range rows{0, lanes_convolution_units(E)};
  lanes_convolution(rows, E, x.data(), w.data(), store_lanes<T>{all.data()});
  lanes_convolution<0, forward>(rows, E, x.data(), w.data(), store_lanes<T>{own.data()});
  CHECK(own == all);

  std::vector<std::uint16_t> corners(dz.size() * 4), own_corners(dz.size() * 4);
  const work_range pooled_rows{0, lanes_convolution_pool_units(E)};
  std::fill(all.begin(), all.end(), T{0});
  std::fill(own.begin(), own.end(), T{0});
  lanes_convolution_pool(pooled_rows, E, x.data(), w.data(),
                         store_pooled_lanes<T>{all.data(), corners.data()});
  lanes_convolution_pool<0, pooled>(pooled_rows, E, x.data(), w.data(),
                                    store_pooled_lanes<T>{own.data(), own_corners.data()});
  CHECK(own == all);
  CHECK(own_corners == corners);

  aligned<T> all_dx(static_cast<std::size_t>(E.blocks * E.in_channels * E.height * E.width * L),
                    poison<T>);
  aligned<T> own_dx = all_dx;
  const work_range in_rows{0, lanes_convolution_input_gradient_units(E)};
  lanes_convolution_input_gradient(in_rows, E, dz.data(), w.data(), store_lanes<T>{all_dx.data()});
  lanes_convolution_input_gradient<short_row(E), backward>(in_rows, E, dz.data(), w.data(),
                                                           store_lanes<T>{own_dx.data()});
  CHECK(own_dx == all_dx);
}

}  // namespace

TEST_CASE("the tiles that extents name suffice for them") {
  check_own_tiles<lanes_convolution_extents{1, 6, 14, 14, 16, 5, 5}, float>();
  check_own_tiles<lanes_convolution_extents{2, 7, 7, 9, 17, 3, 3, 1, 1, 1, 1}, float>();
  check_own_tiles<lanes_convolution_extents{1, 1, 5, 6, 1, 3, 3}, float>();
  check_own_tiles<lanes_convolution_extents{1, 3, 9, 13, 2, 3, 3, 2, 2, 1, 1}, float>();
  // Rows that the gradient of the input unrolls: narrow ones, wide borders, a stride downwards.
  check_own_tiles<lanes_convolution_extents{2, 13, 6, 3, 4, 3, 3, 1, 1, 2, 2}, float>();
  check_own_tiles<lanes_convolution_extents{1, 5, 9, 1, 3, 1, 1}, float>();
  check_own_tiles<lanes_convolution_extents{1, 4, 8, 32, 3, 2, 7, 1, 1, 0, 3}, float>();
  check_own_tiles<lanes_convolution_extents{1, 8, 11, 10, 5, 5, 4, 2, 1, 2, 4}, float>();
}
