// Lane operations for any target, and the choice of those of this build.
#pragma once

#include <cella/backend/cpu/simd/vector.hpp>
#include <cstddef>
#include <cstdint>

namespace cella::cpu::detail {

/// Lane operations in terms of xsimd and plain loops: right everywhere, fast nowhere.
template <class T>
struct portable_lanes {
  using v = vec<T>;
  static constexpr int n_lanes = lanes<T>;

  static v fma(v a, v b, v c) { return xsimd::fma(a, b, c); }
  static v max(v a, v b) { return xsimd::max(a, b); }
  static v min(v a, v b) { return xsimd::min(a, b); }
  static v load_first(const T* p, int n) {
    alignas(v) T row[n_lanes]{};
    for (int i = 0; i < n; ++i) row[i] = p[i];
    return v::load_aligned(row);
  }
  static void store_first(T* p, int n, v a) {
    alignas(v) T row[n_lanes];
    a.store_aligned(row);
    for (int i = 0; i < n; ++i) p[i] = row[i];
  }
  static unsigned greater(v a, v b) {
    bool row[n_lanes];
    (a > b).store_unaligned(row);
    unsigned bits = 0;
    for (int i = 0; i < n_lanes; ++i) bits |= unsigned{row[i]} << i;
    return bits;
  }
  static unsigned unordered(v a, v b) {
    alignas(v) T x[n_lanes], y[n_lanes];
    a.store_aligned(x);
    b.store_aligned(y);
    unsigned bits = 0;
    for (int i = 0; i < n_lanes; ++i) bits |= unsigned{x[i] != x[i] || y[i] != y[i]} << i;
    return bits;
  }
  static v select(unsigned bits, v a, v b) {
    alignas(v) T x[n_lanes], y[n_lanes];
    a.store_aligned(x);
    b.store_aligned(y);
    for (int i = 0; i < n_lanes; ++i) x[i] = bits >> i & 1u ? x[i] : y[i];
    return v::load_aligned(x);
  }
  static v select_negative(v by, v a, v b) {
    // -0 has a sign, too.
    return xsimd::select(xsimd::copysign(v(T{1}), by) < v(T{0}), a, b);
  }
  static v keep(unsigned bits, v a) { return select(bits, a, v(T{0})); }
  static unsigned equal_first(const std::int32_t* p, int n, std::int32_t value) {
    unsigned bits = 0;
    for (int i = 0; i < n; ++i) bits |= unsigned{p[i] == value} << i;
    return bits;
  }
  static unsigned equal_bytes(const std::uint8_t* p, std::uint8_t value) {
    unsigned bits = 0;
    for (int i = 0; i < n_lanes; ++i) bits |= unsigned{p[i] == value} << i;
    return bits;
  }
  static void transpose(v* r) {
    alignas(v) T rows[n_lanes][n_lanes], columns[n_lanes][n_lanes];
    for (int i = 0; i < n_lanes; ++i) r[i].store_aligned(rows[i]);
    for (int i = 0; i < n_lanes; ++i) {
      for (int j = 0; j < n_lanes; ++j) columns[j][i] = rows[i][j];
    }
    for (int i = 0; i < n_lanes; ++i) r[i] = v::load_aligned(columns[i]);
  }
  static v sums(const v* r) {
    v columns[n_lanes];
    for (int i = 0; i < n_lanes; ++i) columns[i] = r[i];
    transpose(columns);
    for (int step = 1; step < n_lanes; step *= 2) {
      for (int i = 0; i < n_lanes; i += 2 * step) columns[i] = columns[i] + columns[i + step];
    }
    return columns[0];
  }
  /// The lanes under f, which takes vectors as well as elements: first those half a vector apart.
  template <class F>
  static T fold(v a, F f) {
    alignas(v) T row[n_lanes];
    a.store_aligned(row);
    for (int step = n_lanes / 2; step; step /= 2) {
      for (int i = 0; i < step; ++i) row[i] = f(row[i], row[i + step]);
    }
    return row[0];
  }
};

/// The operations of this build on vec<T>: these, unless the instruction set has its own.
template <class T, std::size_t Bytes = sizeof(vec<T>)>
struct native_lanes : portable_lanes<T> {};

}  // namespace cella::cpu::detail
