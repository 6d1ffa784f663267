#include <doctest/doctest.h>

#include <cella/backend/cpu/lanes/convolution_weights.hpp>

#include "lanes_reference.hpp"

using namespace cella;
using namespace cella::cpu;
using namespace reference;

namespace {

/// Stores what it is given and counts how often each offset was.
template <class T>
struct counting_plain {
  T* to;
  int* count;
  void operator()(vec<T> value, std::int64_t offset, int n) const {
    store_plain<T>{to}(value, offset, n);
    for (int i = 0; i < n; ++i) ++count[offset + i];
  }
};

bool all_once(const std::vector<int>& count) {
  return std::all_of(count.begin(), count.end(), [](int k) { return k == 1; });
}

/// Gradients of a pooled convolution: d in the lanes, its corners, and what follows from them.
template <class T>
struct pooled_problem {
  int n;
  lanes_convolution_extents e;
  aligned<T> x, d, dz, dw, db;
  std::vector<std::uint16_t> corners;

  pooled_problem(const convolution_case& c, int samples)
      : n(samples), e(c.extents(lane_blocks<T>(samples))) {
    const int L = lanes<T>, planes = n * e.out_channels;
    const auto z = integers<T>(planes * e.out_plane(), 5);
    const auto best = pool(z, planes, e.out_height(), e.out_width());
    const auto plain = integers<T>(planes * e.pooled_plane(), 6);
    x = integers<T>(std::int64_t{n} * e.in_channels * e.height * e.width, 7);
    d = to_lanes<T>(plain, n, e.out_channels, e.pooled_height(), e.pooled_width(), 0, 0, T{0});
    corners.assign(d.size() / static_cast<std::size_t>(L) * 4, 0);
    dz.assign(z.size(), T{0});
    db.assign(static_cast<std::size_t>(e.out_channels), T{0});
    dw.assign(static_cast<std::size_t>(e.out_channels * e.in_channels * e.taps()), T{0});
    const int size = static_cast<int>(e.pooled_plane()) * e.out_channels;
    for (int i = 0; i < static_cast<int>(plain.size()); ++i) {
      // Every seventh window passes no gradient, as behind a relu.
      if (i % 7 == 0) continue;
      const auto at = static_cast<std::size_t>(i);
      const int corner = best.corner[at], s = i / size,
                plane = i / static_cast<int>(e.pooled_plane());
      const int row = i / e.pooled_width() % e.pooled_height(), column = i % e.pooled_width();
      corners[static_cast<std::size_t>((s / L * size + i % size) * 4 + corner)] |=
          static_cast<std::uint16_t>(1u << s % L);
      dz[static_cast<std::size_t>((plane * e.out_height() + 2 * row + corner / 2) * e.out_width() +
                                  2 * column + corner % 2)] = plain[at];
      db[static_cast<std::size_t>(plane % e.out_channels)] += plain[at];
    }
    for_each_product(e, n,
                     [&](std::size_t i, std::size_t k, std::size_t o) { dw[k] += x[i] * dz[o]; });
  }
  aligned<T> x_lanes() const {
    return to_lanes<T>(x, n, e.in_channels, e.height, e.width, e.padding_height, e.padding_width,
                       T{5});
  }
};

}  // namespace

TEST_CASE_TEMPLATE("filter gradient on lanes agrees with plain loops", T, float, double) {
  for (const auto& c : convolution_cases()) {
    for (int n : batches<T>()) {
      const auto e = c.extents(lane_blocks<T>(n));
      CAPTURE(n);
      CAPTURE(e.in_channels);
      CAPTURE(e.out_channels);
      CAPTURE(e.kernel_height);
      CAPTURE(e.kernel_width);
      const auto x = integers<T>(std::int64_t{n} * e.in_channels * e.height * e.width, 1);
      const auto dz = integers<T>(n * e.out_channels * e.out_plane(), 3);
      aligned<T> expected(static_cast<std::size_t>(e.out_channels * e.in_channels * e.taps()),
                          T{0});
      for_each_product(
          e, n, [&](std::size_t i, std::size_t k, std::size_t o) { expected[k] += x[i] * dz[o]; });
      const auto x_lanes = to_lanes<T>(x, n, e.in_channels, e.height, e.width, e.padding_height,
                                       e.padding_width, T{5});
      const auto dz_lanes =
          to_lanes<T>(dz, n, e.out_channels, e.out_height(), e.out_width(), 0, 0, T{0});
      for_each_width(e, [&](auto K) {
        for (int parts : {1, 3}) {
          aligned<T> dw(expected.size(), poison<T>);
          std::vector<int> count(dw.size());
          run(lanes_convolution_weight_gradient_units<K()>(e), parts, [&](work_range r) {
            aligned<T> scratch(
                static_cast<std::size_t>(lanes_convolution_weight_gradient_scratch<T, K()>(e)),
                poison<T>);
            lanes_convolution_weight_gradient<K()>(r, e, x_lanes.data(), dz_lanes.data(),
                                                   scratch.data(),
                                                   counting_plain<T>{dw.data(), count.data()});
          });
          CHECK(dw == expected);
          CHECK(all_once(count));
        }
      });
    }
  }
}

TEST_CASE_TEMPLATE("filter and bias gradient through pooling agree with plain loops", T, float,
                   double) {
  for (const auto& c : convolution_cases()) {
    for (int n : batches<T>()) {
      const pooled_problem<T> p(c, n);
      const auto x = p.x_lanes();
      for_each_width(p.e, [&](auto K) {
        for (int parts : {1, 3}) {
          aligned<T> dw(p.dw.size(), poison<T>), db(p.db.size(), poison<T>);
          std::vector<int> count(dw.size()), bias_count(db.size());
          run(lanes_convolution_weight_gradient_units<K()>(p.e), parts, [&](work_range r) {
            aligned<T> scratch(static_cast<std::size_t>(
                                   lanes_convolution_pool_weight_gradient_scratch<T, K()>(p.e)),
                               poison<T>);
            lanes_convolution_pool_weight_gradient<K()>(
                r, p.e, x.data(), p.d.data(), p.corners.data(), scratch.data(),
                counting_plain<T>{dw.data(), count.data()},
                counting_plain<T>{db.data(), bias_count.data()});
          });
          CHECK(dw == p.dw);
          CHECK(db == p.db);
          CHECK(all_once(count));
          CHECK(all_once(bias_count));
        }
      });
    }
  }
}

TEST_CASE_TEMPLATE("unpooling writes all of dz and its sums", T, float, double) {
  for (const auto& c : convolution_cases()) {
    for (int n : batches<T>()) {
      const pooled_problem<T> p(c, n);
      aligned<T> dz(
          static_cast<std::size_t>(p.e.blocks * p.e.out_channels * p.e.out_plane() * lanes<T>),
          poison<T>);
      aligned<T> db(p.db.size(), poison<T>);
      run(lanes_unpool_units(p.e), 2, [&](work_range r) {
        lanes_unpool(r, p.e, p.d.data(), p.corners.data(), dz.data(), store_plain<T>{db.data()});
      });
      CHECK(from_lanes(dz, n, p.e.out_channels, p.e.out_height(), p.e.out_width()) == p.dz);
      CHECK(db == p.db);
      CHECK(std::none_of(dz.begin(), dz.end(), [](T v) { return std::isnan(v); }));
    }
  }
}

namespace {

/// The weight gradients compiled for the tiles of `E` only, against the same with all tiles.
template <lanes_convolution_extents E, int K, class T>
void check_own_tiles() {
  constexpr auto tiles = lanes_convolution_weight_gradient_tiles<K>(E);
  constexpr int L = lanes<T>;
  const auto x = integers<T>(E.blocks * E.in_channels * E.padded_plane() * L, 1);
  const auto dz = integers<T>(E.blocks * E.out_channels * E.out_plane() * L, 3);
  std::vector<std::uint16_t> corners(dz.size());
  for (std::size_t i = 0; i < corners.size(); ++i) corners[i] = static_cast<std::uint16_t>(i * 7);
  aligned<T> scratch(
      static_cast<std::size_t>(lanes_convolution_pool_weight_gradient_scratch<T, K>(E)));
  aligned<T> all(static_cast<std::size_t>(E.out_channels * E.in_channels * E.taps()), poison<T>);
  aligned<T> own = all;
  const work_range units{0, lanes_convolution_weight_gradient_units<K>(E)};
  lanes_convolution_weight_gradient<K>(units, E, x.data(), dz.data(), scratch.data(),
                                       store_plain<T>{all.data()});
  lanes_convolution_weight_gradient<K, tiles>(units, E, x.data(), dz.data(), scratch.data(),
                                              store_plain<T>{own.data()});
  CHECK(own == all);
  CHECK(std::none_of(own.begin(), own.end(), [](T v) { return std::isnan(v); }));
  lanes_convolution_pool_weight_gradient<K>(units, E, x.data(), dz.data(), corners.data(),
                                            scratch.data(), store_plain<T>{all.data()});
  lanes_convolution_pool_weight_gradient<K, tiles>(units, E, x.data(), dz.data(), corners.data(),
                                                   scratch.data(), store_plain<T>{own.data()});
  CHECK(own == all);
}

}  // namespace

TEST_CASE("the tiles that extents name suffice for the filter gradient") {
  check_own_tiles<lanes_convolution_extents{1, 2, 9, 9, 16, 5, 5}, 5, float>();
  check_own_tiles<lanes_convolution_extents{1, 6, 5, 6, 5, 1, 1}, 0, float>();
  check_own_tiles<lanes_convolution_extents{1, 3, 9, 9, 6, 7, 7, 1, 1, 3, 3}, 0, float>();
  check_own_tiles<lanes_convolution_extents{1, 1, 9, 13, 3, 3, 1}, 0, float>();
}
