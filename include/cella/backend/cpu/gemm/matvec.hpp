// Matrix-vector products: y = W x with W row-major (dot products) or column-major (sums of
// columns). W may be stored in another type than is computed in.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/simd/long_sum.hpp>
#include <cella/backend/cpu/simd/storage.hpp>
#include <cstdint>

namespace cella::cpu {

namespace detail {

inline constexpr int longest_chain = 64;  ///< vectors that are added one after the other

/// dot_rows() of one chain.
template <class T, class S>
[[gnu::noinline]] vec<T> dot_chain(const S* w, std::int64_t w_row, const T* x, int count,
                                   int depth) {
  constexpr int L = lanes<T>, group = L < 8 ? L : 8;
  const int whole = depth / L * L;
  vec<T> rows[L];
#pragma GCC unroll 2
  for (int first = 0; first < L; first += group) {
    vec<T> s[group];
#pragma GCC unroll 8
    for (int j = 0; j < group; ++j) s[j] = vec<T>(T(0));
    if (first + group <= count) {
      const S* p = w + first * w_row;
      for (int k = 0; k < whole; k += L) {
        const vec<T> y = load_unaligned(x + k);
#pragma GCC unroll 8
        for (int j = 0; j < group; ++j)
          s[j] = multiply_add(load_stored<T>(p + j * w_row + k), y, s[j]);
      }
      if (whole < depth) {
        const vec<T> y = load_first(x + whole, depth - whole);
#pragma GCC unroll 8
        for (int j = 0; j < group; ++j) {
          s[j] = multiply_add(load_stored<T>(p + j * w_row + whole, depth - whole), y, s[j]);
        }
      }
    } else if (first < count) {
      for (int j = 0; j < group && first + j < count; ++j) {
        const S* p = w + (first + j) * w_row;
        vec<T> sum(T(0));
        for (int k = 0; k < whole; k += L)
          sum = multiply_add(load_stored<T>(p + k), load_unaligned(x + k), sum);
        if (whole < depth) {
          sum = multiply_add(load_stored<T>(p + whole, depth - whole),
                             load_first(x + whole, depth - whole), sum);
        }
        s[j] = sum;
      }
    }
#pragma GCC unroll 8
    for (int j = 0; j < group; ++j) rows[first + j] = s[j];
  }
  return sums<T>(rows);
}

/// Whether a matrix that comes from memory is read row after row, and asked for ahead, across rows:
/// a Xeon with AVX-512 in a virtual machine yields twice as much. An EPYC of Zen 3 follows the rows
/// of dot_chain() by itself and yields 21 GB/s, but 16 if it is asked.
inline constexpr bool far_rows_by_turns = !few_vector_registers;

/// dot_rows() of such a matrix.
template <class T, class S>
[[gnu::noinline]] vec<T> dot_far_rows(const S* w, std::int64_t w_row, const T* x, int count,
                                      int depth) {
  constexpr int L = lanes<T>, piece = longest_chain * L, ahead = 2048 / int(sizeof(S));
  vec<T> rows[L];
  for (int j = 0; j < L; ++j) rows[j] = vec<T>(T(0));
  for (int j = 0; j < count; ++j) {
    const S* const p = w + j * w_row;
    const auto chain = [&](int k, int end) {
      vec<T> sum(T(0));
      for (; k + L <= end; k += L) {
        __builtin_prefetch(p + k + ahead);
        sum = multiply_add(load_stored<T>(p + k), load_unaligned(x + k), sum);
      }
      if (k < end)
        sum = multiply_add(load_stored<T>(p + k, end - k), load_first(x + k, end - k), sum);
      return sum;
    };
    if (depth <= piece) {
      rows[j] = chain(0, depth);
      continue;
    }
    wide_sum<T> total(vec<T>(T(0)));
    for (int k = 0; k < depth; k += piece) total = total + chain(k, std::min(depth, k + piece));
    rows[j] = total.by_lanes();
  }
  return sums<T>(rows);
}

/// sum_columns() of one chain, added to y if it is not the `first`.
template <class T, int Vectors, class S>
[[gnu::noinline]] void sum_columns_piece(const S* w, std::int64_t w_column, const S* x,
                                         std::int64_t x_stride, int count, int depth, bool first,
                                         T* y) {
  constexpr int L = lanes<T>;
  const int last = count - (Vectors - 1) * L;
  vec<T> sum[Vectors];
#pragma GCC unroll 8
  for (int j = 0; j < Vectors; ++j) sum[j] = vec<T>(T(0));
  for (int k = 0; k < depth; ++k) {
    const vec<T> factor(static_cast<T>(x[k * x_stride]));
    const S* p = w + k * w_column;
#pragma GCC unroll 8
    for (int j = 0; j + 1 < Vectors; ++j) {
      sum[j] = multiply_add(load_stored<T>(p + j * L), factor, sum[j]);
    }
    sum[Vectors - 1] =
        multiply_add(load_stored<T>(p + (Vectors - 1) * L, last), factor, sum[Vectors - 1]);
  }
#pragma GCC unroll 8
  for (int j = 0; j < Vectors; ++j)
    store_unaligned(y + j * L, first ? sum[j] : load_unaligned(y + j * L) + sum[j]);
}

}  // namespace detail

/// Whether a matrix of so many elements comes from memory, or from a far cache.
template <class S>
constexpr bool is_far(std::int64_t elements) {
  return elements * std::int64_t{sizeof(S)} > (std::int64_t{1} << 20);
}
/// y[i] = sum_k w[i * w_row + k] x[k] for `count` (at most lanes<T>) rows, `depth` long. `far`: of
/// a matrix that is_far().
template <class T, class S>
vec<T> dot_rows(const S* w, std::int64_t w_row, const T* x, int count, int depth,
                [[maybe_unused]] bool far = false) {
  if constexpr (detail::far_rows_by_turns) {
    if (far) return detail::dot_far_rows<T>(w, w_row, x, count, depth);
  }
  constexpr int piece = detail::longest_chain * lanes<T>;
  if (depth <= piece) return detail::dot_chain<T>(w, w_row, x, count, depth);
  wide_sum<T> total(vec<T>(T(0)));
  for (int k = 0; k < depth; k += std::min(piece, depth - k))
    total = total + detail::dot_chain<T>(w + k, w_row, x + k, count, std::min(piece, depth - k));
  return total.by_lanes();
}

/// y[i] = sum_k w[i + k * w_column] x[k * x_stride] for `count` elements, at most
/// `Vectors` * lanes<T>; y has room for whole vectors.
template <class T, int Vectors, class S>
void sum_columns(const S* w, std::int64_t w_column, const S* x, std::int64_t x_stride, int count,
                 int depth, T* y) {
  constexpr int L = lanes<T>;
  // So many chains are added in their own precision, sums of those in double.
  constexpr int chains = 16;
  const auto add_chain = [&](int k, bool first) {
    const int chain = std::min(detail::longest_chain, depth - k);
    detail::sum_columns_piece<T, Vectors>(w + k * w_column, w_column, x + k * x_stride, x_stride,
                                          count, chain, first, y);
    return k + chain;
  };
  if (depth <= chains * detail::longest_chain) {
    int k = 0;
    do k = add_chain(k, k == 0);
    while (k < depth);
    return;
  }
  wide_sum<T> total[Vectors];
  for (int j = 0; j < Vectors; ++j) total[j] = wide_sum<T>(vec<T>(T(0)));
  for (int k = 0; k < depth;) {
    for (int chain = 0; chain < chains && k < depth; ++chain) k = add_chain(k, chain == 0);
    for (int j = 0; j < Vectors; ++j) total[j] = total[j] + load_unaligned(y + j * L);
  }
  for (int j = 0; j < Vectors; ++j) store_unaligned(y + j * L, total[j].by_lanes());
}

}  // namespace cella::cpu
