// The vector type of this build, and the few lane operations that xsimd lacks: fused multiply-add
// (xsimd 8.1 has none for AVX-512 and clang does not contract), the first n elements, comparisons
// as bits, square transposes. AVX-512 and AVX2 have their own; any other target takes the portable
// form.
#pragma once

#include <bit>
#include <cella/backend/cpu/plan/vector_unit.hpp>
#include <cella/backend/cpu/simd/instruction_sets.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#if defined(__GNUC__) && !defined(__clang__)
// g++ 12 warns of the undefined registers from which its own AVX-512 intrinsics start, wherever
// they are inlined; what counts is the state where their header is read.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#if defined(__AVX__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <xsimd/xsimd.hpp>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

namespace cella::cpu {

/// Vector of the best instruction set of this build.
template <class T>
using vec = xsimd::batch<T>;

// Plans count on as many lanes as kernels have.
static_assert(
    sizeof(vec<float>) == register_bytes && sizeof(vec<double>) == register_bytes,
    "xsimd and backend/cpu/plan/vector_unit.hpp disagree on the vectors of this instruction set");

/// Elements of a `vec<T>`; at most 16, so that one bit per lane fits `std::uint16_t`.
template <class T>
inline constexpr int lanes = static_cast<int>(vec<T>::size);

/// Vector registers of the instruction set: kernels choose their register tiles by it.
inline constexpr int vector_registers = vector_registers_of(register_bytes);

/// With 16 registers g++ folds loads into products that share them (`in_register`); with 32 it
/// seldom does.
inline constexpr bool few_vector_registers = vector_registers < 32;

/// The lowest n bits, n <= 16.
constexpr unsigned first_bits(int n) { return (1u << n) - 1u; }

namespace detail {

/// The operations of this build on vec<T>: below.
template <class T, std::size_t Bytes = sizeof(vec<T>)>
struct native_lanes;

}  // namespace detail

/// a * b + c (named unlike xsimd's, which argument-dependent lookup would find); rounded once where
/// the instruction set has it (AVX-512, AVX2 with FMA, NEON).
template <class T>
[[gnu::always_inline]] inline vec<T> multiply_add(vec<T> a, std::type_identity_t<vec<T>> b,
                                                  std::type_identity_t<vec<T>> c) {
  return detail::native_lanes<T>::fma(a, b, c);
}

/// Loads and stores of a whole vector; `load` and `store` want the alignment of `vec<T>`.
template <class T>
[[gnu::always_inline]] inline vec<T> load(const T* p) {
  return vec<T>::load_aligned(p);
}
template <class T>
[[gnu::always_inline]] inline vec<T> load_unaligned(const T* p) {
  return vec<T>::load_unaligned(p);
}
template <class T>
[[gnu::always_inline]] inline void store(T* p, std::type_identity_t<vec<T>> a) {
  a.store_aligned(p);
}
template <class T>
[[gnu::always_inline]] inline void store_unaligned(T* p, std::type_identity_t<vec<T>> a) {
  a.store_unaligned(p);
}
/// Stores past the caches, so that what was there is not read first: for results that no cache
/// holds until they are read. p is aligned. Others may read after `finish_stores`.
template <class T>
[[gnu::always_inline]] inline void store_past_caches(T* p, std::type_identity_t<vec<T>> a) {
  [[maybe_unused]] const typename vec<T>::register_type bits = a;
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(p), std::bit_cast<__m512i>(bits));
#elif defined(__AVX__)
  _mm256_stream_si256(reinterpret_cast<__m256i*>(p), std::bit_cast<__m256i>(bits));
#elif defined(__SSE2__)
  _mm_stream_si128(reinterpret_cast<__m128i*>(p), std::bit_cast<__m128i>(bits));
#else
  store(p, a);
#endif
}
inline void finish_stores() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}
/// Stores `Past` the caches, for which p is aligned, or not.
template <bool Past, class T>
[[gnu::always_inline]] inline void store_vector(T* p, std::type_identity_t<vec<T>> a) {
  if constexpr (Past)
    store_past_caches(p, a);
  else
    store_unaligned(p, a);
}

/// The first n (0 <= n <= lanes) elements at p, zeros behind; touches nothing beyond p + n.
template <class T>
[[gnu::always_inline]] inline vec<T> load_first(const T* p, int n) {
  return detail::native_lanes<T>::load_first(p, n);
}
/// Stores the first n (0 <= n <= lanes) lanes; touches nothing beyond p + n.
template <class T>
[[gnu::always_inline]] inline void store_first(T* p, int n, std::type_identity_t<vec<T>> a) {
  detail::native_lanes<T>::store_first(p, n, a);
}

/// Bit i says whether a[i] > b[i]; false where either is NaN.
template <class T>
[[gnu::always_inline]] inline unsigned greater(vec<T> a, std::type_identity_t<vec<T>> b) {
  return detail::native_lanes<T>::greater(a, b);
}

/// Bit i says whether a[i] or b[i] is NaN.
template <class T>
[[gnu::always_inline]] inline unsigned unordered(vec<T> a, std::type_identity_t<vec<T>> b) {
  return detail::native_lanes<T>::unordered(a, b);
}

/// Lane i of a where bit i is set, else of b.
template <class T>
[[gnu::always_inline]] inline vec<T> select(unsigned bits, vec<T> a,
                                            std::type_identity_t<vec<T>> b) {
  return detail::native_lanes<T>::select(bits, a, b);
}

/// Lane i of a where bit i is set, else zero, whatever a holds there.
template <class T>
[[gnu::always_inline]] inline vec<T> keep(unsigned bits, vec<T> a) {
  return detail::native_lanes<T>::keep(bits, a);
}

/// The larger and the smaller of two vectors, lane by lane; either operand where one is NaN.
template <class T>
[[gnu::always_inline]] inline vec<T> maximum(vec<T> a, std::type_identity_t<vec<T>> b) {
  return detail::native_lanes<T>::max(a, b);
}
template <class T>
[[gnu::always_inline]] inline vec<T> minimum(vec<T> a, std::type_identity_t<vec<T>> b) {
  return detail::native_lanes<T>::min(a, b);
}

/// Bit i (i < n <= lanes<T>) says whether p[i] is `value`; reads nothing beyond p + n.
template <class T>
[[gnu::always_inline]] inline unsigned equal_first(const std::int32_t* p, int n,
                                                   std::int32_t value) {
  return detail::native_lanes<T>::equal_first(p, n, value);
}

/// Bit i says whether p[i] is `value`, for lanes<T> bytes.
template <class T>
[[gnu::always_inline]] inline unsigned equal_bytes(const std::uint8_t* p, std::uint8_t value) {
  return detail::native_lanes<T>::equal_bytes(p, value);
}

/// Sum of the lanes.
template <class T>
[[gnu::always_inline]] inline T sum(vec<T> a) {
  return detail::native_lanes<T>::fold(a, [](const auto& x, const auto& y) { return x + y; });
}

/// The largest lane; which one is unspecified if there is a NaN.
template <class T>
[[gnu::always_inline]] inline T largest(vec<T> a) {
  return detail::native_lanes<T>::fold(a, [](const auto& x, const auto& y) {
    if constexpr (std::is_same_v<decltype(x), const T&>)
      return x < y ? y : x;
    else
      return maximum(x, y);
  });
}

/// The largest of n elements, minus infinity if there are none.
template <class T>
[[gnu::always_inline]] inline T largest(const T* x, int n) {
  vec<T> top(-std::numeric_limits<T>::infinity());
  int j = 0;
  for (; j + lanes<T> <= n; j += lanes<T>) top = maximum(top, load_unaligned(x + j));
  if (j < n) top = select(first_bits(n - j), maximum(top, load_first(x + j, n - j)), top);
  return largest(top);
}

/// Lane i is the sum of rows[i]; `rows` are lanes<T> vectors.
template <class T>
[[gnu::always_inline]] inline vec<T> sums(const vec<T>* rows) {
  return detail::native_lanes<T>::sums(rows);
}

/// Transposes the square of lanes<T> vectors in place.
template <class T>
[[gnu::always_inline]] inline void transpose(vec<T>* rows) {
  detail::native_lanes<T>::transpose(rows);
}

/// Single-precision lanes as two vectors of doubles, and back (rounded).
struct wide_lanes {
  vec<double> low, high;
};
[[gnu::always_inline]] inline wide_lanes widen(vec<float> a);
[[gnu::always_inline]] inline vec<float> narrow(wide_lanes a);

/// A vector that several products share, held in a register from here on. Without this g++ 12 may
/// read memory again for each product, and the loads, not the products, set the pace.
template <class T>
[[gnu::always_inline]] inline vec<T> in_register(typename vec<T>::register_type shared) {
#if defined(__SSE2__) && !defined(__clang__)
  asm("" : "+v"(shared));
#endif
  return shared;
}
/// Loads a vector that several products share. Not by `in_register`: g++ then allots registers
/// otherwise, and code for AVX-512, which is well as it is, would change.
template <class T>
[[gnu::always_inline]] inline vec<T> load_shared(const T* p) {
#if defined(__SSE2__) && !defined(__clang__)
  typename vec<T>::register_type a = load(p);
  asm("" : "+v"(a));
  return a;
#else
  return load(p);
#endif
}

/// While it lives, this thread treats denormal numbers as zero and rounds denormal results to zero
/// (x86; elsewhere it does nothing). Denormals in dying momenta make a training step 30 % slower.
class flush_denormals {
 public:
#if defined(__SSE2__)
  flush_denormals() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | 0x8040u); }
  ~flush_denormals() { _mm_setcsr(saved_); }
#else
  flush_denormals() {}
  ~flush_denormals() {}
#endif
  flush_denormals(const flush_denormals&) = delete;
  flush_denormals& operator=(const flush_denormals&) = delete;

#if defined(__SSE2__)
 private:
  unsigned saved_;
#endif
};

namespace detail {

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

template <class T, std::size_t Bytes>
struct native_lanes : portable_lanes<T> {};

#if defined(__AVX512F__)

template <>
struct native_lanes<float, 64> : portable_lanes<float> {
  // The unmasked forms of many intrinsics start from an undefined register, of which g++ 12 warns.
  static constexpr __mmask16 all = 0xffff;
  static __mmask16 mask(unsigned bits) { return static_cast<__mmask16>(bits); }
  static v fma(v a, v b, v c) { return _mm512_fmadd_ps(a, b, c); }
  static v load_first(const float* p, int n) {
    return _mm512_maskz_loadu_ps(mask(first_bits(n)), p);
  }
  static void store_first(float* p, int n, v a) {
    _mm512_mask_storeu_ps(p, mask(first_bits(n)), a);
  }
  static unsigned greater(v a, v b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
  static unsigned unordered(v a, v b) { return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q); }
  static v select(unsigned bits, v a, v b) { return _mm512_mask_mov_ps(b, mask(bits), a); }
  static v keep(unsigned bits, v a) { return _mm512_maskz_mov_ps(mask(bits), a); }
  static unsigned equal_first(const std::int32_t* p, int n, std::int32_t value) {
    const auto first = mask(first_bits(n));
    return _mm512_mask_cmpeq_epi32_mask(first, _mm512_maskz_loadu_epi32(first, p),
                                        _mm512_set1_epi32(value));
  }
  static unsigned equal_bytes(const std::uint8_t* p, std::uint8_t value) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return static_cast<unsigned>(
        _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(static_cast<char>(value)))));
  }
  template <int Blocks>
  static v pick(v a, v b) {
    return _mm512_maskz_shuffle_f32x4(all, a, b, Blocks);
  }
  static v low_pairs(v a, v b) {
    return _mm512_castpd_ps(
        _mm512_maskz_unpacklo_pd(0xff, _mm512_castps_pd(a), _mm512_castps_pd(b)));
  }
  static v high_pairs(v a, v b) {
    return _mm512_castpd_ps(
        _mm512_maskz_unpackhi_pd(0xff, _mm512_castps_pd(a), _mm512_castps_pd(b)));
  }
  static void transpose(v* r) {
    v t[16];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      t[2 * i] = _mm512_maskz_unpacklo_ps(all, r[2 * i], r[2 * i + 1]);
      t[2 * i + 1] = _mm512_maskz_unpackhi_ps(all, r[2 * i], r[2 * i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
      r[i] = low_pairs(t[i], t[i + 2]);
      r[i + 1] = high_pairs(t[i], t[i + 2]);
      r[i + 2] = low_pairs(t[i + 1], t[i + 3]);
      r[i + 3] = high_pairs(t[i + 1], t[i + 3]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      t[i] = pick<0x88>(r[i], r[4 + i]);
      t[4 + i] = pick<0xdd>(r[i], r[4 + i]);
      t[8 + i] = pick<0x88>(r[8 + i], r[12 + i]);
      t[12 + i] = pick<0xdd>(r[8 + i], r[12 + i]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      r[i] = pick<0x88>(t[i], t[8 + i]);
      r[4 + i] = pick<0x88>(t[4 + i], t[12 + i]);
      r[8 + i] = pick<0xdd>(t[i], t[8 + i]);
      r[12 + i] = pick<0xdd>(t[4 + i], t[12 + i]);
    }
  }
  // Adds while it transposes: 30 shuffles where the transpose alone takes 64.
  static v sums(const v* r) {
    v t[8], u[4];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      t[i] = v(_mm512_maskz_unpacklo_ps(all, r[2 * i], r[2 * i + 1])) +
             v(_mm512_maskz_unpackhi_ps(all, r[2 * i], r[2 * i + 1]));
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      u[i] = low_pairs(t[2 * i], t[2 * i + 1]) + high_pairs(t[2 * i], t[2 * i + 1]);
    }
    const v a = pick<0x88>(u[0], u[1]) + pick<0xdd>(u[0], u[1]);
    const v b = pick<0x88>(u[2], u[3]) + pick<0xdd>(u[2], u[3]);
    return pick<0x88>(a, b) + pick<0xdd>(a, b);
  }
  template <class F>
  [[gnu::always_inline]] static float fold(v a, F f) {
    a = f(a, pick<0x4e>(a, a));
    a = f(a, pick<0xb1>(a, a));
    a = f(a, v(_mm512_maskz_shuffle_ps(all, a, a, 0x4e)));
    a = f(a, v(_mm512_maskz_shuffle_ps(all, a, a, 0xb1)));
    return _mm512_cvtss_f32(a);
  }
  static v max(v a, v b) { return _mm512_maskz_max_ps(all, a, b); }
  static v min(v a, v b) { return _mm512_maskz_min_ps(all, a, b); }
};

template <>
struct native_lanes<double, 64> : portable_lanes<double> {
  static constexpr __mmask8 all = 0xff;
  static __mmask8 mask(unsigned bits) { return static_cast<__mmask8>(bits); }
  static v fma(v a, v b, v c) { return _mm512_fmadd_pd(a, b, c); }
  static v load_first(const double* p, int n) {
    return _mm512_maskz_loadu_pd(mask(first_bits(n)), p);
  }
  static void store_first(double* p, int n, v a) {
    _mm512_mask_storeu_pd(p, mask(first_bits(n)), a);
  }
  static unsigned greater(v a, v b) { return _mm512_cmp_pd_mask(a, b, _CMP_GT_OQ); }
  static unsigned unordered(v a, v b) { return _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q); }
  static v select(unsigned bits, v a, v b) { return _mm512_mask_mov_pd(b, mask(bits), a); }
  static v keep(unsigned bits, v a) { return _mm512_maskz_mov_pd(mask(bits), a); }
  template <int Blocks>
  static v pick(v a, v b) {
    return _mm512_maskz_shuffle_f64x2(all, a, b, Blocks);
  }
  static void transpose(v* r) {
    v t[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
      t[i] = _mm512_maskz_unpacklo_pd(all, r[i], r[i + 1]);
      t[i + 1] = _mm512_maskz_unpackhi_pd(all, r[i], r[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const v a = pick<0x88>(t[i], t[2 + i]), b = pick<0x88>(t[4 + i], t[6 + i]);
      const v c = pick<0xdd>(t[i], t[2 + i]), d = pick<0xdd>(t[4 + i], t[6 + i]);
      r[i] = pick<0x88>(a, b);
      r[2 + i] = pick<0x88>(c, d);
      r[4 + i] = pick<0xdd>(a, b);
      r[6 + i] = pick<0xdd>(c, d);
    }
  }
  static v sums(const v* r) {
    v t[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      t[i] = v(_mm512_maskz_unpacklo_pd(all, r[2 * i], r[2 * i + 1])) +
             v(_mm512_maskz_unpackhi_pd(all, r[2 * i], r[2 * i + 1]));
    }
    const v a = pick<0x88>(t[0], t[1]) + pick<0xdd>(t[0], t[1]);
    const v b = pick<0x88>(t[2], t[3]) + pick<0xdd>(t[2], t[3]);
    return pick<0x88>(a, b) + pick<0xdd>(a, b);
  }
  template <class F>
  [[gnu::always_inline]] static double fold(v a, F f) {
    a = f(a, pick<0x4e>(a, a));
    a = f(a, pick<0xb1>(a, a));
    a = f(a, v(_mm512_maskz_shuffle_pd(all, a, a, 0x55)));
    return _mm512_cvtsd_f64(a);
  }
  static v max(v a, v b) { return _mm512_maskz_max_pd(all, a, b); }
  static v min(v a, v b) { return _mm512_maskz_min_pd(all, a, b); }
};

#elif defined(__AVX2__) && defined(__FMA__)

/// All ones, then all zeros: read at offset (lanes - n) it is the mask of the first n lanes.
template <class Integer>
inline constexpr Integer ones_then_zeros[16]{-1, -1, -1, -1, -1, -1, -1, -1,
                                             0,  0,  0,  0,  0,  0,  0,  0};

template <>
struct native_lanes<float, 32> : portable_lanes<float> {
  static __m256i first(int n) {
    return _mm256_loadu_si256(
        reinterpret_cast<const __m256i*>(ones_then_zeros<std::int32_t> + 8 - n));
  }
  static __m256 spread(unsigned bits) {
    const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i all = _mm256_set1_epi32(static_cast<int>(bits));
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(all, bit), bit));
  }
  static v fma(v a, v b, v c) { return _mm256_fmadd_ps(a, b, c); }
  static v load_first(const float* p, int n) { return _mm256_maskload_ps(p, first(n)); }
  static void store_first(float* p, int n, v a) { _mm256_maskstore_ps(p, first(n), a); }
  static unsigned greater(v a, v b) {
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ)));
  }
  static unsigned unordered(v a, v b) {
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_UNORD_Q)));
  }
  static v select(unsigned bits, v a, v b) { return _mm256_blendv_ps(b, a, spread(bits)); }
  static v keep(unsigned bits, v a) { return _mm256_and_ps(spread(bits), a); }
  static unsigned equal_first(const std::int32_t* p, int n, std::int32_t value) {
    const __m256i equal =
        _mm256_cmpeq_epi32(_mm256_maskload_epi32(p, first(n)), _mm256_set1_epi32(value));
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(equal))) & first_bits(n);
  }
  static unsigned equal_bytes(const std::uint8_t* p, std::uint8_t value) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    const __m128i equal = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(static_cast<char>(value)));
    return static_cast<unsigned>(_mm_movemask_epi8(equal)) & 0xffu;
  }
  static void transpose(v* r) {
    v t[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
      t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
      t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {
      r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
      r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
      r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
      r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const v low = _mm256_permute2f128_ps(r[i], r[4 + i], 0x20);
      r[4 + i] = _mm256_permute2f128_ps(r[i], r[4 + i], 0x31);
      r[i] = low;
    }
  }
  static v sums(const v* r) {
    const v a = _mm256_hadd_ps(_mm256_hadd_ps(r[0], r[1]), _mm256_hadd_ps(r[2], r[3]));
    const v b = _mm256_hadd_ps(_mm256_hadd_ps(r[4], r[5]), _mm256_hadd_ps(r[6], r[7]));
    return v(_mm256_permute2f128_ps(a, b, 0x20)) + v(_mm256_permute2f128_ps(a, b, 0x31));
  }
};

template <>
struct native_lanes<double, 32> : portable_lanes<double> {
  static __m256i first(int n) {
    return _mm256_loadu_si256(
        reinterpret_cast<const __m256i*>(ones_then_zeros<std::int64_t> + 8 - n));
  }
  static __m256d spread(unsigned bits) {
    const __m256i bit = _mm256_setr_epi64x(1, 2, 4, 8);
    const __m256i all = _mm256_set1_epi64x(static_cast<long long>(bits));
    return _mm256_castsi256_pd(_mm256_cmpeq_epi64(_mm256_and_si256(all, bit), bit));
  }
  static v fma(v a, v b, v c) { return _mm256_fmadd_pd(a, b, c); }
  static v load_first(const double* p, int n) { return _mm256_maskload_pd(p, first(n)); }
  static void store_first(double* p, int n, v a) { _mm256_maskstore_pd(p, first(n), a); }
  static unsigned greater(v a, v b) {
    return static_cast<unsigned>(_mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_GT_OQ)));
  }
  static unsigned unordered(v a, v b) {
    return static_cast<unsigned>(_mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_UNORD_Q)));
  }
  static v select(unsigned bits, v a, v b) { return _mm256_blendv_pd(b, a, spread(bits)); }
  static v keep(unsigned bits, v a) { return _mm256_and_pd(spread(bits), a); }
  static void transpose(v* r) {
    const v a = _mm256_unpacklo_pd(r[0], r[1]), b = _mm256_unpackhi_pd(r[0], r[1]);
    const v c = _mm256_unpacklo_pd(r[2], r[3]), d = _mm256_unpackhi_pd(r[2], r[3]);
    r[0] = _mm256_permute2f128_pd(a, c, 0x20);
    r[1] = _mm256_permute2f128_pd(b, d, 0x20);
    r[2] = _mm256_permute2f128_pd(a, c, 0x31);
    r[3] = _mm256_permute2f128_pd(b, d, 0x31);
  }
  static v sums(const v* r) {
    const v a = _mm256_hadd_pd(r[0], r[1]), b = _mm256_hadd_pd(r[2], r[3]);
    return v(_mm256_permute2f128_pd(a, b, 0x20)) + v(_mm256_permute2f128_pd(a, b, 0x31));
  }
};

#endif

}  // namespace detail

inline wide_lanes widen(vec<float> a) {
#if defined(__AVX512F__)
  const __m512d bits = _mm512_castps_pd(a);
  return {
      _mm512_maskz_cvtps_pd(0xff, _mm512_castps512_ps256(a)),
      _mm512_maskz_cvtps_pd(0xff, _mm256_castpd_ps(_mm512_maskz_extractf64x4_pd(0xff, bits, 1)))};
#elif defined(__AVX2__) && defined(__FMA__)
  return {_mm256_cvtps_pd(_mm256_castps256_ps128(a)), _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1))};
#else
  alignas(64) float in[lanes<float>];
  alignas(64) double out[lanes<float>];
  a.store_aligned(in);
  for (int i = 0; i < lanes<float>; ++i) out[i] = in[i];
  return {load(out), load(out + lanes<double>)};
#endif
}
inline vec<float> narrow(wide_lanes a) {
#if defined(__AVX512F__)
  const __m256 low = _mm512_maskz_cvtpd_ps(0xff, a.low), high = _mm512_maskz_cvtpd_ps(0xff, a.high);
  return _mm512_castpd_ps(_mm512_maskz_insertf64x4(
      0xff, _mm512_castps_pd(_mm512_castps256_ps512(low)), _mm256_castps_pd(high), 1));
#elif defined(__AVX2__) && defined(__FMA__)
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(a.low)),
                              _mm256_cvtpd_ps(a.high), 1);
#else
  alignas(64) double in[lanes<float>];
  alignas(64) float out[lanes<float>];
  store(in, a.low);
  store(in + lanes<double>, a.high);
  for (int i = 0; i < lanes<float>; ++i) out[i] = float(in[i]);
  return vec<float>::load_aligned(out);
#endif
}

}  // namespace cella::cpu
