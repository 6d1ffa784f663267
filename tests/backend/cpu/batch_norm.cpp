#include <cella/backend/cpu/blocked/pool.hpp>
#include <cella/backend/cpu/rows/batch_norm.hpp>

#include "blocked_reference.hpp"

using namespace cella;
using namespace cella::test;

namespace {

template <class T>
constexpr double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-13;

/// For plain images: (value, offset, channel, pixel, count).
template <class T>
struct store_pixels {
  T* to;
  void operator()(vec<T> v, std::int64_t offset, int, int, int count) const {
    store_first(to + offset, count, v);
  }
};

template <class T, bool Blocked>
void check(int samples, int channels, int pixels, std::mt19937& random) {
  constexpr int L = lanes<T>;
  const norm_extents e{samples, Blocked ? channels / L : channels, pixels};
  const std::int64_t size = std::int64_t{samples} * channels * pixels;
  const auto x = random_aligned<T>(size, random), dy = random_aligned<T>(size, random);
  const auto gamma = random_aligned<T>(channels, random),
             beta = random_aligned<T>(channels, random);
  const double epsilon = 1e-3;
  // A mean that is large beside the variance.
  for (std::int64_t i = 0; i < size; ++i) x[i] += T{3};
  const auto at = [&](std::int64_t i) {
    const std::int64_t c = i / pixels;
    return Blocked ? in_blocks<T>(channels, pixels, int(c / channels), int(c % channels),
                                  int(i % pixels))
                   : i;
  };
  const auto channel = [&](std::int64_t i) { return std::size_t(i / pixels % channels); };
  const auto n = std::size_t(channels);
  std::vector<double> mean(n), variance(n), of_gamma(n), of_beta(n);
  std::vector<double> y(static_cast<std::size_t>(size)), dx(static_cast<std::size_t>(size));
  const double share = 1.0 / (double(samples) * pixels);
  for (std::int64_t i = 0; i < size; ++i) mean[channel(i)] += double(x[at(i)]) * share;
  for (std::int64_t i = 0; i < size; ++i) {
    const double d = double(x[at(i)]) - mean[channel(i)];
    variance[channel(i)] += d * d * share;
  }
  const auto normalized = [&](std::int64_t i) {
    const std::size_t c = channel(i);
    return (double(x[at(i)]) - mean[c]) / std::sqrt(variance[c] + epsilon);
  };
  for (std::int64_t i = 0; i < size; ++i) {
    const auto c = std::int64_t(channel(i));
    y[std::size_t(i)] = normalized(i) * double(gamma[c]) + double(beta[c]);
    of_gamma[channel(i)] += double(dy[at(i)]) * normalized(i);
    of_beta[channel(i)] += double(dy[at(i)]);
  }
  for (std::int64_t i = 0; i < size; ++i) {
    const std::size_t c = channel(i);
    dx[std::size_t(i)] = (double(dy[at(i)]) - (of_beta[c] + normalized(i) * of_gamma[c]) * share) *
                         double(gamma[std::int64_t(c)]) / std::sqrt(variance[c] + epsilon);
  }
  aligned<T> m(channels), v(channels), dg(channels), db(channels), found(size);
  const auto sink = [&] {
    if constexpr (Blocked)
      return store_blocks<T>{found.data()};
    else
      return store_pixels<T>{found.data()};
  }();
  const auto error = [&](const std::vector<double>& expected) {
    return worst<T>(expected, [&](std::int64_t i) { return found[at(i)]; });
  };
  const auto error_of = [&](const std::vector<double>& expected, const aligned<T>& vector) {
    return worst<T>(expected, [&](std::int64_t i) { return vector[i]; });
  };
  // Sums may lie where their results will.
  aligned<T> slices(e.slices() * 2 * channels);
  const auto sums_in = [&](aligned<T>& first, aligned<T>& second) {
    return e.slices() == 1 ? norm_sums<T>{first.data(), second.data()}
                           : norm_sums<T>{slices.data(), slices.data() + channels, 2 * channels};
  };
  const norm_sums<T> moments = sums_in(m, v), gradients = sums_in(dg, db);
  in_parts(e.sum_units(), [&](work_range u) { sum_moments<T, Blocked>(u, e, x.data(), moments); });
  in_parts(e.blocks, [&](work_range u) {
    finish_moments<T, Blocked>(u, e, x.data(), moments, m.data(), v.data());
  });
  CHECK(error_of(mean, m) < tolerance<T>);
  CHECK(error_of(variance, v) < tolerance<T>);
  const norm_factors<T> f{gamma.data(), m.data(), v.data(), static_cast<T>(epsilon)};
  in_parts(samples * e.blocks, [&](work_range u) {
    cpu::batch_norm<T, Blocked>(u, e, x.data(), f, beta.data(), sink);
  });
  CHECK(error(y) < tolerance<T>);
  in_parts(e.sum_units(), [&](work_range u) {
    sum_norm_gradients<T, Blocked>(u, e, x.data(), dy.data(), m.data(), gradients);
  });
  in_parts(e.blocks, [&](work_range u) {
    finish_norm_gradients<T, Blocked>(u, e, f, gradients, dg.data(), db.data());
  });
  CHECK(error_of(of_gamma, dg) < tolerance<T>);
  CHECK(error_of(of_beta, db) < tolerance<T>);
  in_parts(samples * e.blocks, [&](work_range u) {
    batch_norm_gradient<T, Blocked>(u, e, x.data(), dy.data(), f, dg.data(), db.data(), sink);
  });
  CHECK(error(dx) < 10 * tolerance<T>);
}

}  // namespace

TEST_CASE_TEMPLATE("batch norm and its gradient follow double precision", T, float, double) {
  constexpr int L = lanes<T>;
  std::mt19937 random(1);
  for (int pixels : {2, 7, L - 1, L + 1, 5 * L}) {
    CAPTURE(pixels);
    check<T, true>(3, 2 * L, pixels, random);
    check<T, false>(2, 3, pixels, random);
  }
  check<T, false>(7, L + 1, 1, random);
  check<T, true>(5, L, 9, random);
  check<T, true>(2, 9 * L, 6, random);
}

TEST_CASE_TEMPLATE("pooling in blocks takes the first largest element and gives it back", T, float,
                   double) {
  constexpr int L = lanes<T>;
  std::mt19937 random(2);
  for (const auto& [size, kernel, stride, padding] :
       {std::array{8, 2, 2, 0}, std::array{13, 3, 2, 1}, std::array{5, 3, 1, 1},
        std::array{1, 1, 1, 0}}) {
    const int out = (size + 2 * padding - kernel) / stride + 1;
    const blocked_window e{2,      size,    size,    kernel, kernel, stride,
                           stride, padding, padding, out,    out};
    const auto x = random_aligned<T>(std::int64_t{2} * size * size * L, random);
    const auto dy = random_aligned<T>(std::int64_t{2} * out * out * L, random);
    // Few different numbers, so that some are equal.
    for (std::int64_t i = 0; i < x.size; ++i) x[i] = std::floor(x[i] * 4);
    aligned<T> y(dy.size), positions(dy.size), dx(x.size);
    in_parts(
        2, [&](work_range u) { blocked_max_pool<T>(u, e, x.data(), y.data(), positions.data()); });
    in_parts(
        2, [&](work_range u) { blocked_unpool<T>(u, e, dy.data(), positions.data(), dx.data()); });
    std::vector<double> expected(std::size_t(y.size), -1e9), back(std::size_t(x.size), 0.0);
    for (std::int64_t i = 0; i < y.size; ++i) {
      const auto c = i % L, place = i / L % (out * out), plane = i / L / (out * out);
      std::int64_t best = -1;
      for (int k = 0; k < kernel * kernel; ++k) {
        const auto row = place / out * stride - padding + k / kernel;
        const auto column = place % out * stride - padding + k % kernel;
        if (row < 0 || row >= size || column < 0 || column >= size) continue;
        const std::int64_t from = ((plane * size + row) * size + column) * L + c;
        if (double(x[from]) > expected[std::size_t(i)]) {
          expected[std::size_t(i)] = double(x[from]);
          best = from;
        }
      }
      back[std::size_t(best)] += double(dy[i]);
    }
    CHECK(worst<T>(expected, [&](std::int64_t i) { return y[i]; }) == 0);
    CHECK(worst<T>(back, [&](std::int64_t i) { return dx[i]; }) < tolerance<T>);
  }
}

TEST_CASE_TEMPLATE("pooling in blocks: NaN is the largest, minus infinity alone counts", T, float,
                   double) {
  constexpr int L = lanes<T>;
  constexpr T none = -std::numeric_limits<T>::infinity();
  const blocked_window e{.planes = 1,
                         .height = 2,
                         .width = 4,
                         .kernel_height = 2,
                         .kernel_width = 2,
                         .stride_vertical = 2,
                         .stride_horizontal = 2,
                         .out_height = 1,
                         .out_width = 2};
  aligned<T> x(8 * L), y(2 * L), positions(2 * L);
  for (std::int64_t i = 0; i < x.size; ++i) x[i] = i / L % 4 < 2 ? T(i % 3) : none;
  for (int lane = 0; lane < L; ++lane) x[L + lane] = std::numeric_limits<T>::quiet_NaN();
  blocked_max_pool<T>({0, 1}, e, x.data(), y.data(), positions.data());
  for (int lane = 0; lane < L; ++lane) {
    CHECK(std::isnan(y[lane]));
    CHECK(positions[lane] == T(1));
    CHECK(y[L + lane] == none);
    CHECK(positions[L + lane] == T(0));
  }
}
