#include <doctest/doctest.h>

#include <cella/backend/cpu/rows/attention.hpp>
#include <cella/backend/host/buffer.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace cella;
using namespace cella::cpu;

namespace {

/// q, k, v and their gradients lie side by side in rows that are wider than all of them, so that a
/// kernel that walks wrongly, or writes beside its heads, is found out.
template <class T>
struct heads_case {
  attention_extents e;
  T scale = T(0.37);
  int q_width = e.heads * e.width, v_width = e.heads * e.value_width;
  int row = 2 * q_width + v_width + 3;
  std::vector<T> all, dy, y, gradient;

  explicit heads_case(const attention_extents& extents) : e(extents) {
    std::mt19937 random(5);
    std::normal_distribution<double> normal;
    const auto fill = [&](std::vector<T>& v, int size) {
      for (int i = 0; i < size; ++i) v.push_back(T(normal(random)));
    };
    fill(all, e.batch * std::max(e.queries, e.keys) * row);
    fill(dy, e.batch * e.queries * v_width);
    y.assign(dy.size(), std::numeric_limits<T>::quiet_NaN());
    gradient.assign(all.size(), T(77));
  }
  template <class U>
  heads_view<U> part(U* data, int offset, int each) const {
    return {data + offset, std::int64_t{std::max(e.queries, e.keys)} * row, each, row};
  }
  template <class U>
  heads_view<U> result(U* data) const {
    return {data, std::int64_t{e.queries} * v_width, e.value_width, v_width};
  }
  static double at(const heads_view<const T>& t, int b, int h, int p, int w) {
    return double{t.data[b * t.batch + h * t.head + p * t.place + w]};
  }

  void run() {
    const aligned_buffer scratch(std::size_t(attention_scratch<T>(e)));
    attention<T>({0, attention_units(e)}, e, scale, q(), k(), v(), result(y.data()),
                 scratch.data());
  }
  void run_gradient() {
    const aligned_buffer scratch(std::size_t(attention_gradient_scratch<T>(e)));
    T* const d = gradient.data();
    // Units one by one, in reverse: they are independent.
    for (int u = attention_units(e); u-- > 0;)
      attention_gradient<T>({u, u + 1}, e, scale, q(), k(), v(), result<const T>(dy.data()),
                            part(d, 0, e.width), part(d, q_width, e.width),
                            part(d, 2 * q_width, e.value_width), scratch.data());
  }
  heads_view<const T> q() const { return part<const T>(all.data(), 0, e.width); }
  heads_view<const T> k() const { return part<const T>(all.data(), q_width, e.width); }
  heads_view<const T> v() const { return part<const T>(all.data(), 2 * q_width, e.value_width); }

  /// Weights of one query in double.
  std::vector<double> weights(int b, int h, int t) const {
    const int n = e.causal ? std::min(e.keys, t + 1) : e.keys;
    std::vector<double> w(std::size_t(e.keys), 0.0);
    double top = -1e300, total = 0;
    for (int s = 0; s < n; ++s) {
      double sum = 0;
      for (int i = 0; i < e.width; ++i) sum += at(q(), b, h, t, i) * at(k(), b, h, s, i);
      w[std::size_t(s)] = double{scale} * sum;
      top = std::max(top, w[std::size_t(s)]);
    }
    for (int s = 0; s < n; ++s) total += w[std::size_t(s)] = std::exp(w[std::size_t(s)] - top);
    for (double& x : w) x /= total;
    return w;
  }

  double error() const {
    double worst = 0;
    for (int b = 0; b < e.batch; ++b)
      for (int h = 0; h < e.heads; ++h)
        for (int t = 0; t < e.queries; ++t) {
          const auto w = weights(b, h, t);
          for (int i = 0; i < e.value_width; ++i) {
            double sum = 0;
            for (int s = 0; s < e.keys; ++s) sum += w[std::size_t(s)] * at(v(), b, h, s, i);
            const double d = std::abs(sum - at(result<const T>(y.data()), b, h, t, i));
            worst = d <= worst ? worst : d;
            if (!std::isfinite(d)) return 1e9;
          }
        }
    return worst;
  }

  double gradient_error() const {
    std::vector<double> expected(gradient.size(), 77.0);
    const auto clear = [&](int offset, int each) {
      for (int b = 0; b < e.batch; ++b)
        for (int p = 0; p < e.keys; ++p)
          for (int i = 0; i < e.heads * each; ++i)
            expected[std::size_t((b * e.keys + p) * row + offset + i)] = 0;
    };
    clear(0, e.width);
    clear(q_width, e.width);
    clear(2 * q_width, e.value_width);
    for (int b = 0; b < e.batch; ++b)
      for (int h = 0; h < e.heads; ++h)
        for (int t = 0; t < e.queries; ++t) {
          const auto w = weights(b, h, t);
          const auto to = [&](int offset, int each, int p, int i) -> double& {
            return expected[std::size_t((b * e.keys + p) * row + offset + h * each + i)];
          };
          const auto g = result<const T>(dy.data());
          std::vector<double> dw(std::size_t(e.keys), 0.0);
          double mean = 0;
          for (int s = 0; s < e.keys; ++s) {
            for (int i = 0; i < e.value_width; ++i) {
              dw[std::size_t(s)] += at(g, b, h, t, i) * at(v(), b, h, s, i);
              to(2 * q_width, e.value_width, s, i) += w[std::size_t(s)] * at(g, b, h, t, i);
            }
            mean += w[std::size_t(s)] * dw[std::size_t(s)];
          }
          for (int s = 0; s < e.keys; ++s) {
            const double ds = double{scale} * w[std::size_t(s)] * (dw[std::size_t(s)] - mean);
            for (int i = 0; i < e.width; ++i) {
              to(0, e.width, t, i) += ds * at(k(), b, h, s, i);
              to(q_width, e.width, s, i) += ds * at(q(), b, h, t, i);
            }
          }
        }
    double worst = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double d = std::abs(expected[i] - double{gradient[i]});
      if (!std::isfinite(d)) return 1e9;
      worst = std::max(worst, d);
    }
    return worst;
  }
};

// Sizes of one, primes, and round the widths of vectors, tiles and blocks.
constexpr int places[] = {1, 2, 5, 13, 14, 15, 16, 17, 31, 33, 64, 127, 128, 129, 200};
constexpr int widths[] = {1, 7, 16, 33, 64};

template <class T>
constexpr double tolerance = std::is_same_v<T, float> ? 5e-6 : 1e-13;

}  // namespace

TEST_CASE_TEMPLATE("attention equals its definition in double, causal or not", T, float, double) {
  for (int t : places) {
    for (int w : widths) {
      for (bool causal : {false, true}) {
        heads_case<T> c({2, 2, t, t, w, w, causal});
        c.run();
        CAPTURE(t);
        CAPTURE(w);
        CAPTURE(causal);
        CHECK(c.error() < tolerance<T> * 4);
      }
    }
  }
}

TEST_CASE_TEMPLATE("queries, keys and values may be of different numbers and widths", T, float,
                   double) {
  for (const attention_extents& e :
       {attention_extents{1, 3, 5, 40, 8, 20, false}, attention_extents{2, 1, 33, 7, 3, 65, false},
        attention_extents{1, 2, 9, 30, 16, 16, true},
        attention_extents{1, 1, 50, 12, 8, 8, true}}) {
    heads_case<T> c(e);
    c.run();
    CHECK(c.error() < tolerance<T> * 4);
  }
}

TEST_CASE_TEMPLATE("attention's gradients equal their definition in double", T, float, double) {
  for (int t : places) {
    for (int w : widths) {
      for (bool causal : {false, true}) {
        heads_case<T> c({1, 2, t, t, w, w, causal});
        c.run_gradient();
        CAPTURE(t);
        CAPTURE(w);
        CAPTURE(causal);
        CHECK(c.gradient_error() < tolerance<T> * 40);
      }
    }
  }
}

TEST_CASE("scores far apart neither overflow nor lose the largest") {
  heads_case<float> c({1, 1, 20, 20, 8, 8, true});
  for (float& x : c.all) x *= 100;
  c.run();
  CHECK(c.error() < 1e-3);
}
