// Numbers of the gamma and Poisson distributions: what `draw` of their operations gives for each
// element, to the bit, many at a time.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/simd/random_numbers.hpp>
#include <cella/backend/cpu/simd/special_functions.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cella/graph/attributes.hpp>
#include <cella/ops/names.hpp>
#include <cstdint>
#include <type_traits>

namespace cella::cpu {

/// Units of work: stretches of the numbers.
inline constexpr std::int64_t drawn_unit = 1024;
constexpr int drawn_units(std::int64_t count) { return int((count + drawn_unit - 1) / drawn_unit); }

/// y[i] = Op::draw(generator(key, i), parameter[i]), for the units' part of `count` numbers.
template <class T>
using drawn_numbers = void (*)(work_range units, std::uint64_t key, std::int64_t count,
                               const T* parameter, T* y);
template <class Op, class T>
void draw_numbers(work_range units, std::uint64_t key, std::int64_t count, const T* parameter,
                  T* y);

namespace detail {

/// Two numbers that generators of one key give, or four.
struct first_uniforms {
  vec<double> number[4];
};
/// Of the generators whose streams are `first` and following: those of so many blocks from `block`
/// on.
template <int Blocks>
[[gnu::always_inline]] inline first_uniforms uniforms_of_streams(std::uint64_t key,
                                                                 std::uint64_t first,
                                                                 std::uint64_t block = 0) {
  std::uint32_t k0 = std::uint32_t(key), k1 = std::uint32_t(key >> 32);
  const auto start = [&](std::uint64_t count) __attribute__((always_inline)) {
    philox_lanes b(first);
    b.w1 = b.w0;
    b.w2 = b.w0 >> 32;
    b.w0 = word_lanes{} + count;
    return b;
  };
  philox_lanes a = start(block), b = start(block + 1);
  for (int round = 0; round < 10; ++round) {
    a.round(k0, k1);
    if constexpr (Blocks > 1) b.round(k0, k1);
    k0 += 0x9e3779b9u;
    k1 += 0xbb67ae85u;
  }
  first_uniforms u;
  u.number[0] = unit_interval(a.w0, a.w1);
  u.number[1] = unit_interval(a.w2, a.w3);
  if constexpr (Blocks > 1) {
    u.number[2] = unit_interval(b.w0, b.w1);
    u.number[3] = unit_interval(b.w2, b.w3);
  }
  return u;
}

/// Numbers, each of them right to its part `error`, which is negative where the first attempts say
/// nothing: the number was rejected, or accepted by so little that rounding decides.
struct attempted {
  vec<double> number, error;
};

/// Parts that sums of a few rounded terms are far from reaching.
inline constexpr double rounding_decides = 1e-12;

/// The first attempt of random_gamma_op::draw.
[[gnu::always_inline]] inline attempted attempt_gamma(std::uint64_t key, std::uint64_t first,
                                                      vec<double> alpha) {
  const vec<double> zero(0.0), one(1.0), none(-1.0), margin(rounding_decides);
  const auto u = uniforms_of_streams<2>(key, first);
  const auto boosted = alpha < one;
  const auto number = [&](int k) { return u.number[k]; };
  // A shape below 1 takes a number more, before the others.
  const vec<double> of_radius = xsimd::select(boosted, number(1), number(0));
  const vec<double> of_angle = xsimd::select(boosted, number(2), number(1));
  const vec<double> uniform = one - xsimd::select(boosted, number(3), number(2));
  const vec<double> radius = xsimd::sqrt(vec<double>(-2.0) * logarithm<double>(one - of_radius));
  const vec<double> x = radius * cosine<double>(vec<double>(2 * std::numbers::pi) * of_angle);
  const vec<double> d = xsimd::select(boosted, alpha + one, alpha) - vec<double>(1.0 / 3);
  const vec<double> t = one + x / xsimd::sqrt(vec<double>(9.0) * d);
  const vec<double> v = t * t * t, square = x * x;
  const vec<double> bound = one - vec<double>(0.0331) * square * square;
  // Where t is small its digits are few.
  const auto is_exact = t > vec<double>(1.0 / 16) && alpha > zero && alpha < vec<double>(1e100);
  vec<double> error = xsimd::select(is_exact && uniform < bound - margin, margin, none);
  if (greater(zero, error) != 0) {
    const vec<double> safe = xsimd::select(is_exact, v, one);
    const vec<double> height = vec<double>(0.5) * square + d - d * safe + d * logarithm(safe);
    const vec<double> most = margin * (one + square + d * (one + safe));
    error = xsimd::select(is_exact && logarithm<double>(uniform) < height - most, margin, error);
  }
  vec<double> y = d * v;
  if (greater(one, alpha) != 0) {
    const vec<double> exponent =
        logarithm<double>(one - number(0)) / xsimd::select(boosted, alpha, one);
    y = xsimd::select(boosted, y * exponential<double>(exponent), y);
    const vec<double> more = margin * (one - exponent);
    error = xsimd::select(boosted && error > zero, error + more, error);
  }
  return {y, error};
}

/// Numbers of Poisson's distribution with rates below 10, by inversion.
[[gnu::always_inline]] inline attempted attempt_small_poisson(vec<double> u, vec<double> rate) {
  static constexpr int most = 64;
  static constexpr auto reciprocals = [] {
    struct {
      double of[most];
    } r{};
    for (int k = 0; k < most; ++k) r.of[k] = 1.0 / (k + 1);
    return r;
  }();
  const vec<double> one(1.0);
  vec<double> p = exponential<double>(-rate), count(0.0), nearest_to = one;
  for (int k = 0; k < most; ++k) {
    nearest_to = minimum(nearest_to, xsimd::abs(u - p));
    const auto ends = u < p;
    if (greater(p, u) == first_bits(lanes<double>)) break;
    count = xsimd::select(ends, count, count + one);
    u = xsimd::select(ends, u, u - p);
    p = xsimd::select(ends, p, p * (rate * vec<double>(reciprocals.of[k])));
  }
  const auto sure = nearest_to > vec<double>(rounding_decides) && u < p;
  return {count, xsimd::select(sure, vec<double>(0.0), vec<double>(-1.0))};
}

/// Those with rates from 10 on, of which `numbers` are looked for: some attempts.
[[gnu::always_inline]] inline attempted attempt_large_poisson(std::uint64_t key,
                                                              std::uint64_t first,
                                                              first_uniforms numbers,
                                                              vec<double> rate) {
  const vec<double> zero(0.0), one(1.0), half(0.5), margin(rounding_decides);
  const vec<double> b = multiply_add(vec<double>(2.53), xsimd::sqrt(rate), vec<double>(0.931));
  const vec<double> a = multiply_add(vec<double>(0.02483), b, vec<double>(-0.059));
  const vec<double> v_r = vec<double>(0.9277) - vec<double>(3.6224) / (b - vec<double>(2.0));
  const vec<double> inverse_alpha =
      vec<double>(1.1239) + vec<double>(1.1328) / (b - vec<double>(3.4));
  constexpr int most = 4;
  // 1 while a number is looked for.
  vec<double> open = one, count = zero, error(-1.0);
  for (int attempt = 0;;) {
    const vec<double> u = numbers.number[0] - half, v = one - numbers.number[1];
    const vec<double> us = half - xsimd::abs(u);
    const vec<double> at = multiply_add(vec<double>(2.0) * a / us + b, u, rate + vec<double>(0.43));
    const vec<double> k = nearest(at - half), rest = at - k;
    const vec<double> off = margin * (one + xsimd::abs(at));
    // What lies far out is left to the single numbers.
    const auto is_exact = us >= vec<double>(0.013) && k >= zero && rest > off && rest < one - off;
    auto taken = is_exact && us >= vec<double>(0.07) && v < v_r - margin;
    vec<double> sure = xsimd::select(taken, one, zero);
    auto rejected = k < zero && off < half && at < -off;
    if (greater(open, sure) != 0) {
      const vec<double> safe = xsimd::select(k >= zero, k, zero);
      const vec<double> height = logarithm<double>(v * inverse_alpha / (a / (us * us) + b));
      const vec<double> of_k = log_gamma<double>(safe + one), of_rate = safe * logarithm(rate);
      const vec<double> bound = of_rate - rate - of_k;
      const vec<double> most_off = margin * (one + of_rate + rate + of_k);
      // Who is taken at once does not get here.
      const auto slow = is_exact && !(us >= vec<double>(0.07) && v <= v_r + margin);
      taken = taken || (slow && height < bound - most_off);
      rejected = rejected || (slow && height > bound + most_off);
    }
    const auto is_open = open > zero;
    count = xsimd::select(is_open && taken, k, count);
    error = xsimd::select(is_open && taken, zero, error);
    open = xsimd::select(is_open && rejected, one, zero);
    if (greater(open, zero) == 0 || ++attempt == most) break;
    numbers = uniforms_of_streams<1>(key, first, std::uint64_t(attempt));
  }
  return {count, error};
}

[[gnu::always_inline]] inline attempted attempt_poisson(std::uint64_t key, std::uint64_t first,
                                                        vec<double> rate) {
  const vec<double> zero(0.0), none(-1.0), ten(10.0);
  const auto numbers = uniforms_of_streams<1>(key, first);
  const auto small = rate >= zero && rate < ten, large = rate >= ten && rate < vec<double>(1e10);
  attempted y{zero, none};
  if (greater(ten, rate) != 0) {
    const auto s = attempt_small_poisson(numbers.number[0], xsimd::select(small, rate, zero));
    y = {s.number, xsimd::select(small, s.error, none)};
  }
  if (greater(rate, vec<double>(9.99)) != 0) {
    const auto l = attempt_large_poisson(key, first, numbers, xsimd::select(large, rate, ten));
    y = {xsimd::select(large, l.number, y.number), xsimd::select(large, l.error, y.error)};
  }
  return y;
}

}  // namespace detail

template <class Op, class T>
[[gnu::noinline]] void draw_numbers(work_range units, std::uint64_t key, std::int64_t count,
                                    const T* parameter, T* y) {
  constexpr bool counts = std::is_same_v<Op, random_poisson_op>;
  constexpr int L = lanes<double>;
  const std::int64_t end = std::min(count, units.last * drawn_unit);
  const auto draw = [&](std::int64_t i) {
    generator random(key, std::uint64_t(i));
    y[i] = static_cast<T>(Op::draw(random, double{parameter[i]}));
  };
  std::int64_t i = units.first * drawn_unit;
  // In double precision the last digits of a gamma number are those of the scalar functions.
  for (; (counts || std::is_same_v<T, float>)&&i + L <= end; i += L) {
    alignas(64) double given[L], number[L], error[L];
    for (int k = 0; k < L; ++k) given[k] = parameter[i + k];
    const vec<double> p = load(given);
    const detail::attempted a = [&] {
      if constexpr (counts)
        return detail::attempt_poisson(key, std::uint64_t(i), p);
      else
        return detail::attempt_gamma(key, std::uint64_t(i), p);
    }();
    store(number, a.number);
    store(error, a.error);
    for (int k = 0; k < L; ++k) {
      // A number that rounds to the same whatever its error is.
      const T least = static_cast<T>(number[k] * (1 - error[k]));
      const T most = static_cast<T>(number[k] * (1 + error[k]));
      y[i + k] = static_cast<T>(number[k]);
      if (error[k] < 0 || least != most) [[unlikely]]
        draw(i + k);
    }
  }
  for (; i < end; ++i) draw(i);
}

}  // namespace cella::cpu
