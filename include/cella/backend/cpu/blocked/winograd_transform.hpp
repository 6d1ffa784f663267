// Winograd's minimal filtering F(4x4, 3x3): 36 products for 16 results where the direct sum takes
// 144. Points 0, +-5/8, +-3/2 and infinity, whose error is two to four times smaller than that of
// 0, +-1, +-2. Lavin and Gray 2016; the points as in oneDNN.
#pragma once

#include <cella/backend/cpu/plan/winograd.hpp>
#include <cella/backend/cpu/simd/simd.hpp>
#include <cstdint>

namespace cella::cpu::winograd {

namespace detail {
inline constexpr double a = 0.625, b = 1.5, aa = a * a, bb = b * b;
inline constexpr double na = 2 * aa * (aa - bb), nb = 2 * bb * (bb - aa);

template <class T>
[[gnu::always_inline]] inline vec<T> times(double c, vec<T> x) {
  return vec<T>(static_cast<T>(c)) * x;
}
template <class T>
[[gnu::always_inline]] inline vec<T> times_add(double c, vec<T> x, vec<T> y) {
  return multiply_add(vec<T>(static_cast<T>(c)), x, y);
}
}  // namespace detail

// Transforms along one axis: x has elements `s` apart, y `t` apart.

/// Six image pixels -> six factors.
template <class T>
[[gnu::always_inline]] inline void image(const vec<T>* x, int s, vec<T>* y, int t) {
  using namespace detail;
  const vec<T> x0 = x[0], x1 = x[s], x2 = x[2 * s], x3 = x[3 * s], x4 = x[4 * s], x5 = x[5 * s];
  y[0] = times_add<T>(aa * bb, x0, times_add<T>(-(aa + bb), x2, x4));
  vec<T> even = times_add<T>(-bb, x2, x4), odd = times<T>(a, times_add<T>(-bb, x1, x3));
  y[t] = even + odd;
  y[2 * t] = even - odd;
  even = times_add<T>(-aa, x2, x4);
  odd = times<T>(b, times_add<T>(-aa, x1, x3));
  y[3 * t] = even + odd;
  y[4 * t] = even - odd;
  y[5 * t] = times_add<T>(aa * bb, x1, times_add<T>(-(aa + bb), x3, x5));
}
/// Three taps -> six factors.
template <class T>
[[gnu::always_inline]] inline void filter(const vec<T>* x, int s, vec<T>* y, int t) {
  using namespace detail;
  const vec<T> x0 = x[0], x1 = x[s], x2 = x[2 * s];
  y[0] = times<T>(1 / (aa * bb), x0);
  vec<T> even = times_add<T>(1 / na, x0, times<T>(aa / na, x2)), odd = times<T>(a / na, x1);
  y[t] = even + odd;
  y[2 * t] = even - odd;
  even = times_add<T>(1 / nb, x0, times<T>(bb / nb, x2));
  odd = times<T>(b / nb, x1);
  y[3 * t] = even + odd;
  y[4 * t] = even - odd;
  y[5 * t] = x2;
}
/// Six sums -> four results.
template <class T>
[[gnu::always_inline]] inline void result(const vec<T>* x, int s, vec<T>* y, int t) {
  using namespace detail;
  const vec<T> s1 = x[s] + x[2 * s], d1 = x[s] - x[2 * s];
  const vec<T> s2 = x[3 * s] + x[4 * s], d2 = x[3 * s] - x[4 * s];
  y[0] = x[0] + s1 + s2;
  y[t] = times_add<T>(a, d1, times<T>(b, d2));
  y[2 * t] = times_add<T>(aa, s1, times<T>(bb, s2));
  y[3 * t] = times_add<T>(a * aa, d1, times_add<T>(b * bb, d2, x[5 * s]));
}
/// Four results' gradients -> six factors: what sums of products with `image` become taps from.
template <class T>
[[gnu::always_inline]] inline void gradient(const vec<T>* x, int s, vec<T>* y, int t) {
  using namespace detail;
  const vec<T> x0 = x[0], x1 = x[s], x2 = x[2 * s], x3 = x[3 * s];
  y[0] = times<T>(1 / (aa * bb), x0);
  vec<T> even = times_add<T>(1 / na, x0, times<T>(aa / na, x2));
  vec<T> odd = times_add<T>(a / na, x1, times<T>(a * aa / na, x3));
  y[t] = even + odd;
  y[2 * t] = even - odd;
  even = times_add<T>(1 / nb, x0, times<T>(bb / nb, x2));
  odd = times_add<T>(b / nb, x1, times<T>(b * bb / nb, x3));
  y[3 * t] = even + odd;
  y[4 * t] = even - odd;
  y[5 * t] = x3;
}
/// Six sums -> three taps.
template <class T>
[[gnu::always_inline]] inline void taps(const vec<T>* x, int s, vec<T>* y, int t) {
  using namespace detail;
  const vec<T> s1 = x[s] + x[2 * s], d1 = x[s] - x[2 * s];
  const vec<T> s2 = x[3 * s] + x[4 * s], d2 = x[3 * s] - x[4 * s];
  y[0] = x[0] + s1 + s2;
  y[t] = times_add<T>(a, d1, times<T>(b, d2));
  y[2 * t] = times_add<T>(aa, s1, times_add<T>(bb, s2, x[5 * s]));
}

/// What a two-dimensional transform reads and writes, along each axis.
enum class kind { image, filter, result, gradient, taps };
constexpr int reads(kind k) { return k == kind::filter ? 3 : k == kind::gradient ? 4 : 6; }
constexpr int writes(kind k) { return k == kind::result ? 4 : k == kind::taps ? 3 : 6; }

/// x [reads][reads] -> y [writes][writes]
template <kind K, class T>
[[gnu::always_inline]] inline void transform(const vec<T>* x, vec<T>* y) {
  constexpr int n = reads(K), m = writes(K);
  const auto line =
      [](const vec<T>* from, int s, vec<T>* to, int t) __attribute__((always_inline)) {
    if constexpr (K == kind::image)
      image<T>(from, s, to, t);
    else if constexpr (K == kind::filter)
      filter<T>(from, s, to, t);
    else if constexpr (K == kind::result)
      result<T>(from, s, to, t);
    else if constexpr (K == kind::gradient)
      gradient<T>(from, s, to, t);
    else
      taps<T>(from, s, to, t);
  };
  vec<T> half[m * n];
#pragma GCC unroll 6
  for (int j = 0; j < n; ++j) line(x + j, n, half + j, n);
#pragma GCC unroll 6
  for (int i = 0; i < m; ++i) line(half + i * n, 1, y + i * m, 1);
}

}  // namespace cella::cpu::winograd
