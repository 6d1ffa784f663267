// Batch norm by a batch's own statistics, and its gradient: one pass that sums, one that applies.
// Images are plain, [samples][channels][pixels], or in blocks of L channels. Where there are few
// blocks, the sums are taken over slices of the samples, for the sake of threads, and then added.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/loops/sink.hpp>
#include <cella/backend/cpu/plan/sample_slices.hpp>
#include <cella/backend/cpu/simd/compiled_once.hpp>
#include <cella/backend/cpu/simd/long_sum.hpp>
#include <cella/backend/cpu/simd/storage.hpp>
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

/// Calls f(offset of a vector, elements in it) for a plane's vectors.
template <class T, bool Blocked, class F>
[[gnu::always_inline]] inline void for_each_vector(int pixels, F f) {
  constexpr int L = lanes<T>;
  const std::int64_t elements = Blocked ? std::int64_t{pixels} * L : pixels;
  std::int64_t i = 0;
  for (; i + 4 * L <= elements; i += 4 * L) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) f(i + k * L, L);
  }
  for (; i + L <= elements; i += L) f(i, L);
  if (!Blocked && i < elements) f(i, int(elements - i));
}

/// Hands the vectors of a plane of block `b` to a sink, which begins at element `start` of an
/// image: value(i, count) are `count` elements from its element i on. A sink that wants tiles of
/// pixels gets them.
template <class T, bool Blocked, class Sink, class Value>
[[gnu::always_inline]] inline void hand_over_plane(const Sink& sink, int pixels, std::int64_t start,
                                                   int b, Value value) {
  constexpr int L = lanes<T>;
  if constexpr (Blocked && requires(const T* tile) { sink.hand_over(tile, start, pixels, b); }) {
    T* const to = sink.target();
    constexpr int most = 64;
    alignas(64) std::array<T, std::size_t(most * L)> tile;
    for (int p = 0; p < pixels; p += most) {
      const int n = std::min(most, pixels - p);
      const std::int64_t first = std::int64_t{p} * L;
      T* const at = to ? to + start + first : tile.data();
      for_each_vector<T, true>(
          n, [&](std::int64_t i, int)
                 __attribute__((always_inline)) { store(at + i, value(first + i, L)); });
      if (!to) sink.hand_over(tile.data(), start / L + p, n, b);
    }
  } else {
    for_each_vector<T, Blocked>(
        pixels, [&](std::int64_t i, int count) __attribute__((always_inline)) {
          if constexpr (Blocked)
            sink(value(i, count), (start + i) / L, b);
          else
            sink(value(i, count), start + i, b, int(i), count);
        });
  }
}

/// Elements from plane to plane of one block.
template <class T, bool Blocked>
constexpr std::int64_t norm_plane(const norm_extents& e) {
  return std::int64_t{e.pixels} * (Blocked ? lanes<T> : 1);
}

template <class T, bool Blocked>
void store_channel(T* p, int block, vec<T> value) {
  if constexpr (Blocked)
    store_unaligned(p + block * lanes<T>, value);
  else
    store_first(p + block, 1, value);
}

/// A channel's sum; in all lanes if the image is plain.
template <class T, bool Blocked>
[[gnu::always_inline]] inline vec<T> of_channel(const long_sum<T>& s) {
  if constexpr (Blocked)
    return s.by_lanes();
  else
    return vec<T>(s.over_lanes());
}
/// Sums u and v over some samples and all pixels: `term(offset, count)` yields both at a vector.
template <class T, bool Blocked, class Term>
[[gnu::always_inline]] inline std::array<vec<T>, 2> channel_sums(const norm_extents& e,
                                                                 work_range samples, int block,
                                                                 Term term) {
  constexpr int L = lanes<T>;
  // A run is four chains of at most 16 vectors: of a part of an image, or of several small ones.
  constexpr std::int64_t longest = 16;
  const std::int64_t plane = norm_plane<T, Blocked>(e);
  const std::int64_t chain_of_image = plane / (4 * L) + plane / L % 4 + 1;
  const std::int64_t images_of_run = std::max<std::int64_t>(1, longest / chain_of_image);
  const vec<T> zero(T{0});
  std::array<vec<T>, 4> run_u{zero, zero, zero, zero}, run_v = run_u;
  long_sum<T> u, v;
  const auto end_run = [&]() __attribute__((always_inline)) {
    u.add((run_u[0] + run_u[1]) + (run_u[2] + run_u[3]));
    v.add((run_v[0] + run_v[1]) + (run_v[2] + run_v[3]));
    run_u.fill(zero);
    run_v.fill(zero);
  };
  std::int64_t images = 0;
  for (int n = samples.first; n < samples.last; ++n) {
    const std::int64_t start = (std::int64_t{n} * e.blocks + block) * plane;
    std::int64_t i = 0;
    const auto add = [&](std::size_t k, int count) __attribute__((always_inline)) {
      const auto [a, b] = term(start + i, count);
      run_u[k] = run_u[k] + a;
      run_v[k] = run_v[k] + b;
      i += count;
    };
    for (;;) {
      const std::int64_t end = std::min(plane, i + longest * 4 * L);
      while (i + 4 * L <= end) {
#pragma GCC unroll 4
        for (std::size_t k = 0; k < 4; ++k) add(k, L);
      }
      if (plane - i < 4 * L) break;
      end_run();
    }
#pragma GCC unroll 1
    while (i + L <= plane) add(0, L);
    if (!Blocked && i < plane) add(1, int(plane - i));
    if (++images < images_of_run) continue;
    end_run();
    images = 0;
  }
  if (images > 0) end_run();
  return {of_channel<T, Blocked>(u), of_channel<T, Blocked>(v)};
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
  const auto total = [&](const T* p) {
    const vec<T> first = channel_value<T, Blocked>(p, block);
    if (e.slices() == 1) return first;
    wide_sum<T> all(first);
    for (int k = 1; k < e.slices(); ++k)
      all = all + channel_value<T, Blocked>(p + k * sums.slice, block);
    return all.by_lanes();
  };
  return {total(sums.u), total(sums.v)};
}

template <class T, class S>
[[gnu::always_inline]] inline vec<T> some(const S* p, int count) {
  return count == lanes<T> ? load_stored<T>(p) : load_stored<T>(p, count);
}

/// About the mean of each channel: the median of three numbers of it, or of three vectors. One
/// number may be so far off that the square of its distance swallows the variance; and so may
/// those at the border of an image.
template <class T, bool Blocked, class S>
[[gnu::always_inline]] inline vec<T> origin(const norm_extents& e, const S* x, int block) {
  constexpr int L = lanes<T>;
  const std::int64_t plane = norm_plane<T, Blocked>(e);
  const bool one_image = plane >= 4 * L;
  const S* const p = x + block * plane;
  const auto place = [&](int k) {
    if (one_image) return p + std::int64_t{e.pixels} * (k + 1) / 4 * (Blocked ? L : 1);
    return p + std::int64_t{e.samples} * k / 3 * e.blocks * plane;
  };
  const bool whole = Blocked || one_image;
  const auto some_of_it = [&](int k) {
    return whole ? load_stored<T>(place(k)) : vec<T>(static_cast<T>(*place(k)));
  };
  const vec<T> a = some_of_it(0), b = some_of_it(1), c = some_of_it(2);
  const vec<T> median = maximum(minimum(a, b), minimum(maximum(a, b), c));
  return Blocked || !one_image ? median : vec<T>(sum(median) * (T(1) / T(L)));
}

}  // namespace detail

/// What mean and variance are computed from, in one pass: sums of differences from about the
/// channel's mean, which keeps them small, and of their squares. Units: e.sum_units().
template <class T, bool Blocked, class S>
[[gnu::noinline]] void sum_moments(work_range units, const norm_extents& e, const S* x,
                                   const norm_sums<T>& sums) {
  detail::sum_slices<T, Blocked>(units, e, sums, [&](int b) {
    const vec<T> origin = detail::origin<T, Blocked>(e, x, b);
    return [=](std::int64_t i, int count) {
      vec<T> d = detail::some<T>(x + i, count) - origin;
      if (count < lanes<T>) d = keep(first_bits(count), d);
      return std::array{d, d * d};
    };
  });
}
CELLA_COMPILED_ONCE(sum_moments<float, true, float>);
CELLA_COMPILED_ONCE(sum_moments<double, true, double>);
CELLA_COMPILED_ONCE(sum_moments<float, false, float>);
CELLA_COMPILED_ONCE(sum_moments<double, false, double>);
/// Mean and variance (divided by the count) of each channel; the sums may lie there. Units: blocks.
template <class T, bool Blocked, class S>
void finish_moments(work_range units, const norm_extents& e, const S* x, const norm_sums<T>& sums,
                    T* mean, T* variance) {
  const vec<T> share(static_cast<T>(1 / e.count()));
  for (int b = units.first; b < units.last; ++b) {
    const vec<T> origin = detail::origin<T, Blocked>(e, x, b);
    const auto [s, q] = detail::added<T, Blocked>(e, sums, b);
    const vec<T> m = s * share;
    detail::store_channel<T, Blocked>(mean, b, m + origin);
    detail::store_channel<T, Blocked>(variance, b, maximum(q * share - m * m, vec<T>(T{0})));
  }
}
CELLA_COMPILED_ONCE(finish_moments<float, true, float>);
CELLA_COMPILED_ONCE(finish_moments<double, true, double>);
CELLA_COMPILED_ONCE(finish_moments<float, false, float>);
CELLA_COMPILED_ONCE(finish_moments<double, false, double>);

/// (x - mean) / sqrt(variance + epsilon) gamma + beta; a sink of blocks gets (value, vector,
/// block), a plain one (value, offset, channel, pixel, count). Units: planes.
template <class T, bool Blocked, class S, class Sink>
[[gnu::noinline]] void batch_norm(work_range units, const norm_extents& e, const S* x,
                                  norm_factors<T> f, const T* beta, const Sink& target) {
  const own_sink<Sink> sink = target;
  const std::int64_t plane = detail::norm_plane<T, Blocked>(e);
  for (int u = units.first; u < units.last; ++u) {
    const int b = u % e.blocks;
    const auto value = [&](const T* p) { return detail::channel_value<T, Blocked>(p, b); };
    const vec<T> scale =
        value(f.gamma) * detail::reciprocal_root<T>(value(f.variance) + vec<T>(f.epsilon));
    const vec<T> mean = value(f.mean), shift = value(beta);
    const std::int64_t start = u * plane;
    detail::hand_over_plane<T, Blocked>(
        sink, e.pixels, start, b, [&](std::int64_t i, int count) __attribute__((always_inline)) {
          return multiply_add(detail::some<T>(x + start + i, count) - mean, scale, shift);
        });
  }
}

/// What the gradients of gamma and beta are computed from. Units: e.sum_units().
template <class T, bool Blocked, class S, class D>
[[gnu::noinline]] void sum_norm_gradients(work_range units, const norm_extents& e, const S* x,
                                          const D* dy, const T* means, const norm_sums<T>& sums) {
  detail::sum_slices<T, Blocked>(units, e, sums, [&](int b) {
    const vec<T> mean = detail::channel_value<T, Blocked>(means, b);
    return [=](std::int64_t i, int count) {
      const vec<T> d = detail::some<T>(dy + i, count);
      return std::array{d * (detail::some<T>(x + i, count) - mean), d};
    };
  });
}
CELLA_COMPILED_ONCE(sum_norm_gradients<float, true, float, float>);
CELLA_COMPILED_ONCE(sum_norm_gradients<double, true, double, double>);
CELLA_COMPILED_ONCE(sum_norm_gradients<float, false, float, float>);
CELLA_COMPILED_ONCE(sum_norm_gradients<double, false, double, double>);
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
template <class T, bool Blocked, class S, class D, class Sink>
[[gnu::noinline]] void batch_norm_gradient(work_range units, const norm_extents& e, const S* x,
                                           const D* dy, norm_factors<T> f, const T* gamma,
                                           const T* beta, const Sink& target) {
  const own_sink<Sink> sink = target;
  const std::int64_t plane = detail::norm_plane<T, Blocked>(e);
  const vec<T> share(static_cast<T>(1 / e.count()));
  for (int u = units.first; u < units.last; ++u) {
    const int b = u % e.blocks;
    const auto value = [&](const T* p) { return detail::channel_value<T, Blocked>(p, b); };
    const vec<T> r = detail::reciprocal_root<T>(value(f.variance) + vec<T>(f.epsilon));
    const vec<T> scale = value(f.gamma) * r, mean = value(f.mean);
    const vec<T> of_x = scale * r * value(gamma) * share, constant = scale * value(beta) * share;
    const std::int64_t start = u * plane;
    detail::hand_over_plane<T, Blocked>(
        sink, e.pixels, start, b, [&](std::int64_t i, int count) __attribute__((always_inline)) {
          const vec<T> centred = detail::some<T>(x + start + i, count) - mean;
          return detail::some<T>(dy + start + i, count) * scale -
                 multiply_add(centred, of_x, constant);
        });
  }
}

}  // namespace cella::cpu
