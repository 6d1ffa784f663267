#include <doctest/doctest.h>

#include <cella/backend/cpu/lanes/dense.hpp>

#include "lanes_reference.hpp"

using namespace cella;
using namespace cella::cpu;
using namespace reference;

namespace {

struct layer {
  int in, out;
};
const std::vector<layer> layers{{1, 1},   {3, 2},   {16, 16}, {17, 5},   {6, 17}, {33, 11},
                                {40, 12}, {25, 25}, {84, 10}, {120, 84}, {7, 37}, {64, 9}};

template <class T>
struct counting_lanes {
  T* to;
  int* count;
  int rows;
  bool* row_right;
  void operator()(vec<T> value, std::int64_t element, int row) const {
    store(to + element * lanes<T>, value);
    ++count[element];
    if (element % rows != row) *row_right = false;
  }
};

bool all_once(const std::vector<int>& count) {
  return std::all_of(count.begin(), count.end(), [](int k) { return k == 1; });
}

/// Runs the kernel and compares with y [n][rows].
template <class T>
void check_dense(const lanes_dense_extents& e, int n, const aligned<T>& w, const aligned<T>& x,
                 const aligned<T>& expected) {
  const auto lanes_x = to_lanes<T>(x, n, e.inner, 1, 1, 0, 0, poison<T>);
  for (int parts : {1, 3}) {
    aligned<T> y(static_cast<std::size_t>(e.blocks * e.rows * lanes<T>), poison<T>);
    std::vector<int> count(static_cast<std::size_t>(e.blocks * e.rows));
    bool row_right = true;
    run(lanes_dense_units(e), parts, [&](work_range r) {
      lanes_dense(r, e, w.data(), lanes_x.data(),
                  counting_lanes<T>{y.data(), count.data(), e.rows, &row_right});
    });
    CHECK(from_lanes(y, n, e.rows, 1, 1) == expected);
    CHECK(all_once(count));
    CHECK(row_right);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("dense layers on lanes agree with plain loops", T, float, double) {
  for (const auto [in, out] : layers) {
    for (int n : batches<T>()) {
      CAPTURE(in);
      CAPTURE(out);
      CAPTURE(n);
      const auto w = integers<T>(in * out, 1), x = integers<T>(n * in, 2),
                 dy = integers<T>(n * out, 3);
      aligned<T> y(dy.size(), T{0}), dx(x.size(), T{0}), dw(w.size(), T{0});
      aligned<T> db(static_cast<std::size_t>(out), T{0});
      for (int s = 0; s < n; ++s) {
        for (int o = 0; o < out; ++o) {
          const auto so = static_cast<std::size_t>(s * out + o);
          db[static_cast<std::size_t>(o)] += dy[so];
          for (int i = 0; i < in; ++i) {
            const auto si = static_cast<std::size_t>(s * in + i);
            const auto oi = static_cast<std::size_t>(o * in + i);
            y[so] += w[oi] * x[si];
            dx[si] += w[oi] * dy[so];
            dw[oi] += dy[so] * x[si];
          }
        }
      }
      const int blocks = lane_blocks<T>(n);
      check_dense<T>({blocks, out, in, in, 1}, n, w, x, y);
      check_dense<T>({blocks, in, out, 1, in}, n, w, dy, dx);

      const lanes_dense_weight_extents e{blocks, out, in};
      const auto lanes_x = to_lanes<T>(x, n, in, 1, 1, 0, 0, T{5});
      const auto lanes_dy = to_lanes<T>(dy, n, out, 1, 1, 0, 0, T{0});
      aligned<T> xt(static_cast<std::size_t>(lanes_transposed_size<T>(e)), poison<T>);
      run(lanes_transpose_units<T>(e), 3,
          [&](work_range r) { lanes_transpose(r, e, lanes_x.data(), xt.data()); });
      for (int parts : {1, 3}) {
        aligned<T> got(dw.size(), poison<T>), bias(db.size(), poison<T>);
        run(lanes_dense_weight_gradient_units<T>(e), parts, [&](work_range r) {
          lanes_dense_weight_gradient(r, e, lanes_dy.data(), xt.data(), store_plain<T>{got.data()});
        });
        run(lanes_channel_sums_units<T>(out), parts, [&](work_range r) {
          lanes_channel_sums(r, blocks, out, 1, lanes_dy.data(), store_plain<T>{bias.data()});
        });
        CHECK(got == dw);
        CHECK(bias == db);
      }
    }
  }
}

TEST_CASE_TEMPLATE("channel sums take in every pixel", T, float, double) {
  for (int pixels : {1, 2, 5, 12}) {
    for (int n : batches<T>()) {
      const int channels = 19;
      const auto x = integers<T>(n * channels * pixels, 4);
      aligned<T> expected(channels, T{0}), got(channels, poison<T>);
      for (std::size_t i = 0; i < x.size(); ++i) {
        expected[i / static_cast<std::size_t>(pixels) % channels] += x[i];
      }
      const auto lanes_x = to_lanes<T>(x, n, channels, 1, pixels, 0, 0, T{0});
      run(lanes_channel_sums_units<T>(channels), 2, [&](work_range r) {
        lanes_channel_sums(r, lane_blocks<T>(n), channels, pixels, lanes_x.data(),
                           store_plain<T>{got.data()});
      });
      CHECK(got == expected);
    }
  }
}

namespace {

/// Both dense kernels compiled for the tiles of their extents only, against the same with all
/// tiles.
template <int In, int Out, int Blocks, class T>
void check_own_tiles() {
  constexpr lanes_dense_extents e{Blocks, Out, In, In, 1};
  constexpr lanes_dense_weight_extents we{Blocks, Out, In};
  const auto w = integers<T>(In * Out, 1), x = integers<T>(Blocks * In * lanes<T>, 2);
  const auto dy = integers<T>(Blocks * Out * lanes<T>, 3);
  const auto xt = integers<T>(lanes_transposed_size<T>(we), 4);
  aligned<T> all(dy.size(), poison<T>), own = all, all_dw(w.size(), poison<T>), own_dw = all_dw;
  const work_range rows{0, lanes_dense_units(e)};
  lanes_dense(rows, e, w.data(), x.data(), store_lanes<T>{all.data()});
  lanes_dense<lanes_dense_tiles(e)>(rows, e, w.data(), x.data(), store_lanes<T>{own.data()});
  CHECK(own == all);
  const work_range units{0, lanes_dense_weight_gradient_units<T>(we)};
  lanes_dense_weight_gradient(units, we, dy.data(), xt.data(), store_plain<T>{all_dw.data()});
  lanes_dense_weight_gradient<lanes_dense_weight_gradient_tiles<T>(we)>(
      units, we, dy.data(), xt.data(), store_plain<T>{own_dw.data()});
  CHECK(own_dw == all_dw);
  CHECK(std::none_of(own_dw.begin(), own_dw.end(), [](T v) { return std::isnan(v); }));
}

}  // namespace

TEST_CASE_TEMPLATE("the tiles that extents name suffice for dense layers", T, float, double) {
  check_own_tiles<400, 120, 2, T>();
  check_own_tiles<84, 10, 1, T>();
  check_own_tiles<17, 1, 3, T>();
  check_own_tiles<5, 23, 2, T>();
}
