// Batch norm by a batch's own statistics, and its gradient: one pass that sums, one that applies.
// Images are plain, [samples][channels][pixels], or in blocks of L channels. Where there are few
// blocks, the sums are taken over slices of the samples, for the sake of threads, and then added.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/plan/sample_slices.hpp>
#include <cella/backend/cpu/simd/simd.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cmath>
#include <cstdint>

namespace cella::cpu {

/// `blocks` of channels; for plain images, single channels.
struct norm_extents {
  int samples{}, blocks{}, pixels{};

  constexpr double count() const { return double(samples) * pixels; }
  constexpr int slices() const { return norm_slices(samples, blocks); }
  constexpr int sum_units() const { return slices() * blocks; }
};

/// Two sums for each channel, and the elements from those of a slice to the next.
template <class T>
struct norm_sums {
  T *u, *v;
  std::int64_t slice{};
};

/// What the channels are normalized by.
template <class T>
struct norm_factors {
  const T *gamma, *mean, *variance;
  T epsilon;
};

namespace detail {

/// One number for each channel of a block, or of one channel in every lane.
template <class T, bool Blocked>
vec<T> channel_value(const T* p, int block) {
  if constexpr (Blocked)
    return load_unaligned(p + block * lanes<T>);
  else
    return vec<T>(p[block]);
}
template <class T>
vec<T> reciprocal_root(vec<T> x) {
  return vec<T>(T{1}) / xsimd::sqrt(x);
}

/// Calls f(offset of a vector, elements in it) for a plane's vectors, four at a time as
/// f(offset, accumulator): what is summed is summed in four chains.
template <class T, bool Blocked, class F>
[[gnu::always_inline]] inline void for_each_vector(int pixels, F f) {
  constexpr int L = lanes<T>;
  const std::int64_t elements = Blocked ? std::int64_t{pixels} * L : pixels;
  std::int64_t i = 0;
  for (; i + 4 * L <= elements; i += 4 * L) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) f(i + k * L, std::size_t(k), L);
  }
  for (; i + L <= elements; i += L) f(i, std::size_t(0), L);
  if (!Blocked && i < elements) f(i, std::size_t(0), int(elements - i));
}

/// Elements from plane to plane of one block.
template <class T, bool Blocked>
constexpr std::int64_t norm_plane(const norm_extents& e) {
  return std::int64_t{e.pixels} * (Blocked ? lanes<T> : 1);
}

/// Sums over a channel that were kept in four chains; in all lanes if the image is plain.
template <class T, bool Blocked>
vec<T> joined(const std::array<vec<T>, 4>& a) {
  const vec<T> total = (a[0] + a[1]) + (a[2] + a[3]);
  if constexpr (Blocked)
    return total;
  else
    return vec<T>(sum(total));
}
template <class T, bool Blocked>
void store_channel(T* p, int block, vec<T> value) {
  if constexpr (Blocked)
    store_unaligned(p + block * lanes<T>, value);
  else
    store_first(p + block, 1, value);
}

/// Sums u and v over some samples and all pixels: `term(offset, count)` yields both at a vector.
template <class T, bool Blocked, class Term>
[[gnu::always_inline]] inline std::array<vec<T>, 2> channel_sums(const norm_extents& e,
                                                                 work_range samples, int block,
                                                                 Term term) {
  std::array<vec<T>, 4> u, v, row_u, row_v;
  u.fill(vec<T>(T{0}));
  v.fill(vec<T>(T{0}));
  const std::int64_t plane = norm_plane<T, Blocked>(e);
  for (int n = samples.first; n < samples.last; ++n) {
    const std::int64_t start = (std::int64_t{n} * e.blocks + block) * plane;
    // Each image by itself first, which keeps the rounding error small.
    row_u.fill(vec<T>(T{0}));
    row_v.fill(vec<T>(T{0}));
    for_each_vector<T, Blocked>(
        e.pixels, [&](std::int64_t i, std::size_t k, int count) __attribute__((always_inline)) {
          const auto [a, b] = term(start + i, count);
          row_u[k] = row_u[k] + a;
          row_v[k] = row_v[k] + b;
        });
    for (std::size_t k = 0; k < 4; ++k) {
      u[k] = u[k] + row_u[k];
      v[k] = v[k] + row_v[k];
    }
  }
  return {joined<T, Blocked>(u), joined<T, Blocked>(v)};
}

/// The sums of units [first, last) of slices times blocks: `term(block)` yields the term above.
template <class T, bool Blocked, class Term>
[[gnu::always_inline]] inline void sum_slices(work_range units, const norm_extents& e,
                                              const norm_sums<T>& sums, Term term) {
  for (int i = units.first; i < units.last; ++i) {
    const int k = i / e.blocks, b = i % e.blocks;
    const auto [u, v] = channel_sums<T, Blocked>(e, part_of(e.samples, e.slices(), k), b, term(b));
    store_channel<T, Blocked>(sums.u + k * sums.slice, b, u);
    store_channel<T, Blocked>(sums.v + k * sums.slice, b, v);
  }
}
/// A block's sums over all slices.
template <class T, bool Blocked>
std::array<vec<T>, 2> added(const norm_extents& e, const norm_sums<T>& sums, int block) {
  vec<T> u = channel_value<T, Blocked>(sums.u, block), v = channel_value<T, Blocked>(sums.v, block);
  for (int k = 1; k < e.slices(); ++k) {
    u = u + channel_value<T, Blocked>(sums.u + k * sums.slice, block);
    v = v + channel_value<T, Blocked>(sums.v + k * sums.slice, block);
  }
  return {u, v};
}

template <class T>
[[gnu::always_inline]] inline vec<T> some(const T* p, int count) {
  return count == lanes<T> ? load_unaligned(p) : load_first(p, count);
}

}  // namespace detail

/// What mean and variance are computed from, in one pass: sums of differences from the channel's
/// first pixel, which keeps them small, and of their squares. Units: e.sum_units().
template <class T, bool Blocked>
[[gnu::noinline]] void sum_moments(work_range units, const norm_extents& e, const T* x,
                                   const norm_sums<T>& sums) {
  detail::sum_slices<T, Blocked>(units, e, sums, [&](int b) {
    const vec<T> origin =
        detail::channel_value<T, Blocked>(x + b * detail::norm_plane<T, Blocked>(e), 0);
    return [=](std::int64_t i, int count) {
      vec<T> d = detail::some(x + i, count) - origin;
      if (count < lanes<T>) d = keep(first_bits(count), d);
      return std::array{d, d * d};
    };
  });
}
/// Mean and variance (divided by the count) of each channel; the sums may lie there. Units: blocks.
template <class T, bool Blocked>
void finish_moments(work_range units, const norm_extents& e, const T* x, const norm_sums<T>& sums,
                    T* mean, T* variance) {
  const vec<T> share(static_cast<T>(1 / e.count()));
  for (int b = units.first; b < units.last; ++b) {
    const vec<T> origin =
        detail::channel_value<T, Blocked>(x + b * detail::norm_plane<T, Blocked>(e), 0);
    const auto [s, q] = detail::added<T, Blocked>(e, sums, b);
    const vec<T> m = s * share;
    detail::store_channel<T, Blocked>(mean, b, m + origin);
    detail::store_channel<T, Blocked>(variance, b, maximum(q * share - m * m, vec<T>(T{0})));
  }
}

/// (x - mean) / sqrt(variance + epsilon) gamma + beta; a sink of blocks gets (value, vector,
/// block), a plain one (value, offset, channel, pixel, count). Units: planes.
template <class T, bool Blocked, class Sink>
[[gnu::noinline]] void batch_norm(work_range units, const norm_extents& e, const T* x,
                                  norm_factors<T> f, const T* beta, const Sink& target) {
  const Sink sink = target;
  const std::int64_t plane = detail::norm_plane<T, Blocked>(e);
  for (int u = units.first; u < units.last; ++u) {
    const int b = u % e.blocks;
    const auto value = [&](const T* p) { return detail::channel_value<T, Blocked>(p, b); };
    const vec<T> scale =
        value(f.gamma) * detail::reciprocal_root<T>(value(f.variance) + vec<T>(f.epsilon));
    const vec<T> mean = value(f.mean), shift = value(beta);
    const std::int64_t start = u * plane;
    detail::for_each_vector<T, Blocked>(
        e.pixels, [&](std::int64_t i, std::size_t, int count) __attribute__((always_inline)) {
          const vec<T> y = multiply_add(detail::some(x + start + i, count) - mean, scale, shift);
          if constexpr (Blocked)
            sink(y, (start + i) / lanes<T>, b);
          else
            sink(y, start + i, b, int(i), count);
        });
  }
}

/// What the gradients of gamma and beta are computed from. Units: e.sum_units().
template <class T, bool Blocked>
[[gnu::noinline]] void sum_norm_gradients(work_range units, const norm_extents& e, const T* x,
                                          const T* dy, const T* means, const norm_sums<T>& sums) {
  detail::sum_slices<T, Blocked>(units, e, sums, [&](int b) {
    const vec<T> mean = detail::channel_value<T, Blocked>(means, b);
    return [=](std::int64_t i, int count) {
      const vec<T> d = detail::some(dy + i, count);
      return std::array{d * (detail::some(x + i, count) - mean), d};
    };
  });
}
/// The gradients of gamma and beta; the sums may lie there. Units: blocks.
template <class T, bool Blocked>
void finish_norm_gradients(work_range units, const norm_extents& e, const norm_factors<T>& f,
                           const norm_sums<T>& sums, T* gamma, T* beta) {
  for (int b = units.first; b < units.last; ++b) {
    const auto [gx, g] = detail::added<T, Blocked>(e, sums, b);
    const vec<T> variance = detail::channel_value<T, Blocked>(f.variance, b);
    detail::store_channel<T, Blocked>(
        gamma, b, gx * detail::reciprocal_root<T>(variance + vec<T>(f.epsilon)));
    detail::store_channel<T, Blocked>(beta, b, g);
  }
}

/// The gradient of x, from the other two. Units: planes.
template <class T, bool Blocked, class Sink>
[[gnu::noinline]] void batch_norm_gradient(work_range units, const norm_extents& e, const T* x,
                                           const T* dy, norm_factors<T> f, const T* gamma,
                                           const T* beta, const Sink& target) {
  const Sink sink = target;
  const std::int64_t plane = detail::norm_plane<T, Blocked>(e);
  const vec<T> share(static_cast<T>(1 / e.count()));
  for (int u = units.first; u < units.last; ++u) {
    const int b = u % e.blocks;
    const auto value = [&](const T* p) { return detail::channel_value<T, Blocked>(p, b); };
    const vec<T> r = detail::reciprocal_root<T>(value(f.variance) + vec<T>(f.epsilon));
    const vec<T> scale = value(f.gamma) * r, mean = value(f.mean);
    const vec<T> of_x = scale * r * value(gamma) * share, constant = scale * value(beta) * share;
    const std::int64_t start = u * plane;
    detail::for_each_vector<T, Blocked>(
        e.pixels, [&](std::int64_t i, std::size_t, int count) __attribute__((always_inline)) {
          const vec<T> centred = detail::some(x + start + i, count) - mean;
          const vec<T> d =
              detail::some(dy + start + i, count) * scale - multiply_add(centred, of_x, constant);
          if constexpr (Blocked)
            sink(d, (start + i) / lanes<T>, b);
          else
            sink(d, start + i, b, int(i), count);
        });
  }
}

}  // namespace cella::cpu
