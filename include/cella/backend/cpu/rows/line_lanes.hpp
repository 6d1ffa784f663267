// Lines of complex numbers of a plain tensor, into lanes and back: several side by side, one in
// each lane.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/simd/simd.hpp>
#include <complex>
#include <cstddef>

namespace cella::cpu {

/// A complex number in each lane, with the arithmetic of fourier_kernels.hpp. It is copied by its
/// vectors: g++ would copy the whole in pieces of 16 bytes, and processors wait for these before
/// they read vectors of them.
template <class T>
struct complex_lanes {
  vec<T> re, im;

  complex_lanes() : re(T{}), im(T{}) {}
  complex_lanes(const vec<T>& real, const vec<T>& imaginary) : re(real), im(imaginary) {}
  complex_lanes(const complex_lanes& a) : re(a.re), im(a.im) {}
  complex_lanes& operator=(const complex_lanes& a) {
    re = a.re;
    im = a.im;
    return *this;
  }

  friend complex_lanes operator+(const complex_lanes& a, const complex_lanes& b) {
    return {a.re + b.re, a.im + b.im};
  }
  friend complex_lanes operator-(const complex_lanes& a, const complex_lanes& b) {
    return {a.re - b.re, a.im - b.im};
  }
  friend complex_lanes turned(const complex_lanes& a, std::complex<T> b) {
    const vec<T> x(b.real()), y(b.imag());
    return {multiply_add(a.re, x, -(a.im * y)), multiply_add(a.re, y, a.im * x)};
  }
  friend complex_lanes quarter_turn(const complex_lanes& a, T quarter) {
    return {a.im * vec<T>(-quarter), a.re * vec<T>(quarter)};
  }
  friend complex_lanes mirrored(const complex_lanes& a) { return {a.re, -a.im}; }
  friend complex_lanes stretched(const complex_lanes& a, T by) {
    return {a.re * vec<T>(by), a.im * vec<T>(by)};
  }
};

/// How lines of complex numbers lie, counted in real numbers: `inner` lines side by side, and
/// blocks of so many one after the other.
struct line_layout {
  std::int64_t numbers;  ///< of a line
  std::int64_t step;     ///< from one to the next
  std::int64_t to_im;    ///< from a real part to its imaginary one; 0: there is none
  std::int64_t inner;
  std::int64_t to_line;   ///< from one of the inner lines to the next
  std::int64_t to_block;  ///< from `inner` lines to the next ones

  static constexpr line_layout of_complex(std::int64_t n, std::int64_t inner) {
    return {n, 2 * inner, 1, inner, 2, 2 * inner * n};
  }
  /// Real numbers.
  static constexpr line_layout of_real(std::int64_t n, std::int64_t inner) {
    return {n, inner, 0, inner, 1, inner * n};
  }
  /// n pairs of real numbers, each as a complex one.
  static constexpr line_layout of_pairs(std::int64_t n, std::int64_t inner) {
    return {n, 2 * inner, inner, inner, 1, 2 * inner * n};
  }

  constexpr std::int64_t begin(std::int64_t line) const {
    return line / inner * to_block + line % inner * to_line;
  }
  /// Whether the numbers of a line follow each other without gaps.
  constexpr bool is_dense() const { return step == (to_im ? 2 : 1); }
};

/// `count` lines from line `first` on, as many as there are lanes at most. Lanes that are too many
/// hold any numbers.
template <class T>
void read_lines(const T* x, const line_layout& l, std::int64_t first, int count,
                complex_lanes<T>* line);
/// And back, multiplied with `scale`.
template <class T>
void write_lines(const complex_lanes<T>* line, T scale, const line_layout& l, std::int64_t first,
                 int count, T* y);

/// The same of one line.
template <class T>
void read_lines(const T* x, const line_layout& l, std::int64_t first, int, std::complex<T>* line) {
  x += l.begin(first);
  for (std::int64_t k = 0; k < l.numbers; ++k, x += l.step)
    line[k] = {x[0], l.to_im ? x[l.to_im] : 0};
}
template <class T>
void write_lines(const std::complex<T>* line, T scale, const line_layout& l, std::int64_t first,
                 int, T* y) {
  y += l.begin(first);
  for (std::int64_t k = 0; k < l.numbers; ++k, y += l.step) {
    y[0] = line[k].real() * scale;
    if (l.to_im) y[l.to_im] = line[k].imag() * scale;
  }
}

// ------------------------------------------------------------------------------------------------

namespace detail {

/// Real and imaginary parts, which follow each other in memory.
template <class T>
complex_lanes<T> read_by_turns(const T* x, int count) {
  constexpr int n = lanes<T>;
  const vec<T> low = load_first(x, std::min(n, 2 * count));
  const vec<T> high = load_first(x + n, std::max(0, 2 * count - n));
  return {even_lanes(low, high), odd_lanes(low, high)};
}
template <class T>
void write_by_turns(const complex_lanes<T>& a, int count, T* y) {
  constexpr int n = lanes<T>;
  store_first(y, std::min(n, 2 * count), low_by_turns(a.re, a.im));
  store_first(y + n, std::max(0, 2 * count - n), high_by_turns(a.re, a.im));
}

}  // namespace detail

template <class T>
void read_lines(const T* x, const line_layout& l, std::int64_t first, int count,
                complex_lanes<T>* line) {
  constexpr int n = lanes<T>;
  if (l.is_dense()) {
    // Squares of lines and parts of numbers.
    const int together = l.to_im ? n / 2 : n;
    const T* at[n];
    for (int p = 0; p < n; ++p) at[p] = x + l.begin(first + std::min(p, count - 1));
    for (std::int64_t k = 0; k < l.numbers; k += together) {
      const int here = int(std::min<std::int64_t>(together, l.numbers - k));
      vec<T> square[n];
      if (here == together) {
        for (int p = 0; p < n; ++p) square[p] = load_unaligned(at[p] + k * l.step);
      } else {
        for (int p = 0; p < n; ++p) square[p] = load_first(at[p] + k * l.step, here * int(l.step));
      }
      transpose<T>(square);
      for (int q = 0; q < here; ++q) {
        if (l.to_im)
          line[k + q] = {square[2 * q], square[2 * q + 1]};
        else
          line[k + q] = {square[q], vec<T>(0)};
      }
    }
  } else if (l.inner >= n) {
    const T* from = x + l.begin(first);
    for (std::int64_t k = 0; k < l.numbers; ++k, from += l.step) {
      if (l.to_line == 2)
        line[k] = detail::read_by_turns(from, count);
      else
        line[k] = {load_first(from, count),
                   l.to_im ? load_first(from + l.to_im, count) : vec<T>(0)};
    }
  } else {
    for (int p = 0; p < n; ++p) {
      const T* from = x + l.begin(first + std::min(p, count - 1));
      for (std::int64_t k = 0; k < l.numbers; ++k, from += l.step) {
        reinterpret_cast<T*>(&line[k].re)[p] = from[0];
        reinterpret_cast<T*>(&line[k].im)[p] = l.to_im ? from[l.to_im] : 0;
      }
    }
  }
}

template <class T>
void write_lines(const complex_lanes<T>* line, T scale, const line_layout& l, std::int64_t first,
                 int count, T* y) {
  constexpr int n = lanes<T>;
  const vec<T> by(scale);
  if (l.is_dense()) {
    const int together = l.to_im ? n / 2 : n;
    T* at[n];
    for (int p = 0; p < count; ++p) at[p] = y + l.begin(first + p);
    for (std::int64_t k = 0; k < l.numbers; k += together) {
      const int here = int(std::min<std::int64_t>(together, l.numbers - k));
      vec<T> square[n]{};
      for (int q = 0; q < here; ++q) {
        if (l.to_im) {
          square[2 * q] = line[k + q].re * by;
          square[2 * q + 1] = line[k + q].im * by;
        } else {
          square[q] = line[k + q].re * by;
        }
      }
      transpose<T>(square);
      if (here == together) {
        for (int p = 0; p < count; ++p) store_unaligned(at[p] + k * l.step, square[p]);
      } else {
        for (int p = 0; p < count; ++p)
          store_first(at[p] + k * l.step, here * int(l.step), square[p]);
      }
    }
  } else if (l.inner >= n) {
    T* to = y + l.begin(first);
    for (std::int64_t k = 0; k < l.numbers; ++k, to += l.step) {
      const complex_lanes<T> z = stretched(line[k], scale);
      if (l.to_line == 2) {
        detail::write_by_turns(z, count, to);
      } else {
        store_first(to, count, z.re);
        if (l.to_im) store_first(to + l.to_im, count, z.im);
      }
    }
  } else {
    for (int p = 0; p < count; ++p) {
      T* to = y + l.begin(first + p);
      for (std::int64_t k = 0; k < l.numbers; ++k, to += l.step) {
        to[0] = reinterpret_cast<const T*>(&line[k].re)[p] * scale;
        if (l.to_im) to[l.to_im] = reinterpret_cast<const T*>(&line[k].im)[p] * scale;
      }
    }
  }
}

}  // namespace cella::cpu
