// Fourier transforms of lines of a plain tensor along an axis, in double precision: several lines
// at a time, one in each lane.
#pragma once

#include <array>
#include <cella/backend/cpu/rows/best_position.hpp>
#include <cella/backend/cpu/simd/simd.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cella/ops/fourier_kernels.hpp>
#include <complex>
#include <concepts>
#include <cstddef>
#include <optional>

namespace cella::cpu {

/// What fourier_transform computes on: a complex number in each lane.
struct complex_lanes {
  vec<double> re{}, im{};

  friend complex_lanes operator+(const complex_lanes& a, const complex_lanes& b) {
    return {a.re + b.re, a.im + b.im};
  }
  friend complex_lanes operator-(const complex_lanes& a, const complex_lanes& b) {
    return {a.re - b.re, a.im - b.im};
  }
  friend complex_lanes turned(const complex_lanes& a, std::complex<double> b) {
    const vec<double> x(b.real()), y(b.imag());
    return {multiply_add(a.re, x, -(a.im * y)), multiply_add(a.re, y, a.im * x)};
  }
  friend complex_lanes quarter_turn(const complex_lanes& a, double quarter) {
    return {a.im * vec<double>(-quarter), a.re * vec<double>(quarter)};
  }
  void set(int lane, std::complex<double> z) {
    reinterpret_cast<double*>(&re)[lane] = z.real();
    reinterpret_cast<double*>(&im)[lane] = z.imag();
  }
  std::complex<double> get(int lane) const {
    return {reinterpret_cast<const double*>(&re)[lane], reinterpret_cast<const double*>(&im)[lane]};
  }
};

namespace detail {

/// Lines that are transformed at a time: one, if there are few, or if they would need much memory.
constexpr int fourier_lanes(const search_extents& e) {
  constexpr int most = lanes<double>;
  return e.outer * e.inner >= most / 2 && e.extent <= 1 << 16 ? most : 1;
}
/// The tables of a length, which this thread has kept from the last calls.
template <std::same_as<double> R>
const cella::detail::fourier_transform<R>& transform_of(std::int64_t n, int sign) {
  struct tables {
    std::int64_t n{};
    int sign{};
    std::optional<cella::detail::fourier_transform<R>> of{};
  };
  static thread_local std::array<tables, 4> kept;
  static thread_local std::size_t next = 0;
  for (const tables& t : kept)
    if (t.of && t.n == n && t.sign == sign) return *t.of;
  tables& t = kept[next++ % kept.size()];
  t.n = n;
  t.sign = sign;
  return t.of.emplace(n, sign);
}

/// Real and imaginary parts by turns.
template <class T>
const T* parts_of(const std::complex<T>* x) {
  return reinterpret_cast<const T*>(x);
}
template <class T>
T* parts_of(std::complex<T>* x) {
  return reinterpret_cast<T*>(x);
}
/// Lines that begin at x + first[...], in double precision.
template <class T>
void put_lines(const std::complex<T>* x, const std::int64_t* first, const search_extents& e,
               complex_lanes* line) {
  constexpr int L = lanes<double>, together = L / 2;
  std::int64_t k = 0;
  // Squares of lines and parts of numbers.
  for (; e.inner == 1 && k + together <= e.extent; k += together) {
    vec<double> square[L];
    for (int p = 0; p < L; ++p) square[p] = load_double(parts_of(x + first[p] + k));
    transpose<double>(square);
    for (int q = 0; q < together; ++q) line[k + q] = {square[2 * q], square[2 * q + 1]};
  }
  for (; k < e.extent; ++k)
    for (int p = 0; p < L; ++p) line[k].set(p, x[first[p] + k * e.inner]);
}
template <class T>
void put_lines(const std::complex<T>* x, const std::int64_t* first, const search_extents& e,
               std::complex<double>* line) {
  for (std::int64_t k = 0; k < e.extent; ++k) line[k] = x[*first + k * e.inner];
}
/// And back, of so many lanes, multiplied with `scale`.
template <class T>
void take_lines(const complex_lanes* line, double scale, int count, const std::int64_t* first,
                const search_extents& e, std::complex<T>* y) {
  constexpr int L = lanes<double>, together = L;
  const vec<double> by(scale);
  std::int64_t k = 0;
  for (; e.inner == 1 && k + together <= e.extent; k += together) {
    vec<double> low[L], high[L];
    for (int q = 0; q < L / 2; ++q) {
      low[2 * q] = line[k + q].re * by;
      low[2 * q + 1] = line[k + q].im * by;
      high[2 * q] = line[k + L / 2 + q].re * by;
      high[2 * q + 1] = line[k + L / 2 + q].im * by;
    }
    transpose<double>(low);
    transpose<double>(high);
    for (int p = 0; p < count; ++p) {
      T* const to = parts_of(y + first[p] + k);
      if constexpr (std::is_same_v<T, float>) {
        store_unaligned(to, narrow({low[p], high[p]}));
      } else {
        store_unaligned(to, low[p]);
        store_unaligned(to + L, high[p]);
      }
    }
  }
  for (; k < e.extent; ++k)
    for (int p = 0; p < count; ++p)
      y[first[p] + k * e.inner] = static_cast<std::complex<T>>(line[k].get(p) * scale);
}
template <class T>
void take_lines(const std::complex<double>* line, double scale, int, const std::int64_t* first,
                const search_extents& e, std::complex<T>* y) {
  for (std::int64_t k = 0; k < e.extent; ++k)
    y[*first + k * e.inner] = static_cast<std::complex<T>>(line[k] * scale);
}

/// C has so many lanes.
template <int Lanes, class C, class T>
void transform_lines(work_range units, const search_extents& e, int sign, double scale,
                     const std::complex<T>* x, std::complex<T>* y, std::byte* scratch) {
  const auto& transform = transform_of<double>(e.extent, sign);
  C* const line = reinterpret_cast<C*>(scratch);
  C* const result = line + e.extent;
  const std::int64_t count = e.outer * e.inner;
  for (std::int64_t unit = units.first; unit < units.last; ++unit) {
    std::int64_t first[Lanes];
    const int here = int(std::min<std::int64_t>(Lanes, count - unit * Lanes));
    for (int p = 0; p < Lanes; ++p) {  // lanes that are too many repeat the last line
      const std::int64_t n = unit * Lanes + std::min(p, here - 1);
      first[p] = n / e.inner * e.inner * e.extent + n % e.inner;
    }
    put_lines(x, first, e, line);
    transform(line, result);
    take_lines(result, scale, here, first, e, y);
  }
}

}  // namespace detail

constexpr int fourier_units(const search_extents& e) {
  const int at_once = detail::fourier_lanes(e);
  return e.extent == 0 ? 0 : int((e.outer * e.inner + at_once - 1) / at_once);
}
constexpr std::int64_t fourier_scratch(const search_extents& e) {
  return 2 * e.extent * detail::fourier_lanes(e) * std::int64_t{sizeof(std::complex<double>)};
}
/// Lines of x -> lines of y, as fourier_transform says, multiplied with `scale`.
template <class T>
void fourier_lines(work_range units, const search_extents& e, int sign, double scale,
                   const std::complex<T>* x, std::complex<T>* y, std::byte* scratch) {
  if (detail::fourier_lanes(e) > 1)
    detail::transform_lines<lanes<double>, complex_lanes>(units, e, sign, scale, x, y, scratch);
  else
    detail::transform_lines<1, std::complex<double>>(units, e, sign, scale, x, y, scratch);
}

}  // namespace cella::cpu
