// Attention as one kernel: scores, softmax and weighted sum for a few queries at a time, and its
// gradient, which computes the weights again. Nothing of the size queries x keys is stored; what a
// causal query does not see is skipped.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/gemm_tile.hpp>
#include <cella/backend/cpu/math.hpp>
#include <cella/backend/work_range.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace cella::cpu {

/// Queries and keys are `width` wide, values `value_width`. `causal`: query t sees keys 0 to t.
struct attention_extents {
  int batch{}, heads{}, queries{}, keys{}, width{}, value_width{};
  bool causal{};
};

/// A tensor of heads: element w at place p of head h in sample b lies at
/// `data[b * batch + h * head + p * place + w]`.
template <class T>
struct heads_view {
  T* data{};
  std::int64_t batch{}, head{}, place{};

  T* of(const attention_extents& e, int unit) const {
    return data + unit / e.heads * batch + unit % e.heads * head;
  }
};

/// Units of work: the heads of each sample.
constexpr int attention_units(const attention_extents& e) { return e.batch * e.heads; }

/// Bytes of scratch for each thread.
template <class T>
constexpr std::int64_t attention_scratch(const attention_extents& e);
template <class T>
constexpr std::int64_t attention_gradient_scratch(const attention_extents& e);

/// y = softmax(scale q k^T) v for the given units; scale > 0. `scratch` is aligned to 64 bytes.
template <class T>
void attention(work_range units, const attention_extents& e, T scale, heads_view<const T> q,
               heads_view<const T> k, heads_view<const T> v, heads_view<T> y, std::byte* scratch);

/// The gradients of q, k and v for the gradient dy of y. As many queries as keys.
template <class T>
void attention_gradient(work_range units, const attention_extents& e, T scale,
                        heads_view<const T> q, heads_view<const T> k, heads_view<const T> v,
                        heads_view<const T> dy, heads_view<T> dq, heads_view<T> dk,
                        heads_view<T> dv, std::byte* scratch);

namespace detail {

/// What the kernels of a head have in common.
template <class T>
struct attention_head {
  static constexpr int L = lanes<T>;
  static constexpr int columns = register_tile<T>::columns;
  static constexpr int tallest = register_tile<T>::rows;
  /// Queries of the gradient whose weights are kept at once.
  static constexpr int block = 128;

  static constexpr std::int64_t whole(std::int64_t n) {
    return (n + columns - 1) / columns * columns;
  }

  /// `rows` rows of `width` elements as panels of a product that sums over the rows.
  static void pack_rows(const T* from, std::int64_t row, int rows, int width, T* to) {
    for (int j = 0; j < width; j += columns, to += std::int64_t{rows} * columns)
      pack_panel(std::min(columns, width - j), rows, from + j, 1, row, to, columns);
  }
  /// The same rows as panels of a product that sums over the width.
  static void pack_transposed(const T* from, std::int64_t row, int rows, int width, T* to) {
    for (int i = 0; i < rows; i += columns, to += std::int64_t{width} * columns)
      pack_panel(std::min(columns, rows - i), width, from + i * row, row, 1, to, columns);
  }

  /// c[i][j] (+)= sum over k < depth of a(i, k) b(k, j) for `height` rows and `width` columns; B
  /// lies in panels, of which one has `panel` rows.
  static void multiply(int height, int width, int depth, const T* a, std::int64_t a_row,
                       std::int64_t a_column, const T* b, std::int64_t panel, T* c,
                       std::int64_t c_row, bool accumulate) {
    for (int j = 0; j < width; j += columns) {
      const int here = std::min(columns, width - j);
      const int vectors = (here + L - 1) / L;
      const tile_task<T> task{.depth = depth,
                              .a = a,
                              .a_row = a_row,
                              .a_column = a_column,
                              .b = b + j * panel,
                              .b_row = columns,
                              .b_rows = nullptr,
                              .c = c + j,
                              .c_row = c_row,
                              .last = here - (vectors - 1) * L,
                              .accumulate = accumulate};
      multiply_tile<tile_form::strided>(height, vectors, task);
    }
  }

  /// Calls f(first, height) for tiles of [first, last) whose heights differ by at most one.
  template <class F>
  static void for_each_tile(int first, int last, F f) {
    const int tiles = (last - first + tallest - 1) / tallest;
    for (int t = 0; t < tiles; ++t) {
      const int height = (last - first + tiles - 1 - t) / (tiles - t);
      f(first, height);
      first += height;
    }
  }

  static T largest(const T* row, int n) {
    vec<T> top(-std::numeric_limits<T>::infinity());
    int j = 0;
    for (; j + L <= n; j += L) top = maximum(top, load(row + j));
    if (j < n) top = select(first_bits(n - j), maximum(top, load(row + j)), top);
    alignas(64) T each[L];
    store(each, top);
    for (int step = L / 2; step; step /= 2) {
      for (int i = 0; i < step; ++i) each[i] = std::max(each[i], each[i + step]);
    }
    return each[0];
  }
  /// Turns the scores of the n keys that a query sees into e^(scale (score - largest)), and what
  /// follows up to `end` into zeros; returns the sum. Rows lie aligned and with room for whole
  /// vectors.
  static T powers(T* row, int n, int end, T scale) {
    const vec<T> factor(scale);
    const vec<T> offset(-scale * largest(row, n));
    vec<T> total(T(0));
    int j = 0;
    for (; j + L <= n; j += L) {
      const vec<T> p = exponential<T>(multiply_add(load(row + j), factor, offset));
      total = total + p;
      store(row + j, p);
    }
    if (j < n) {
      const vec<T> p =
          keep(first_bits(n - j), exponential<T>(multiply_add(load(row + j), factor, offset)));
      total = total + p;
      store(row + j, p);
      j += L;
    }
    for (; j < end; j += L) store(row + j, vec<T>(T(0)));
    return sum(total);
  }
  static void multiply_row(T* row, int n, T factor) {
    for (int j = 0; j < n; j += L) store(row + j, load(row + j) * vec<T>(factor));
  }
};

}  // namespace detail

template <class T>
constexpr std::int64_t attention_scratch(const attention_extents& e) {
  using head = detail::attention_head<T>;
  const std::int64_t keys = head::whole(e.keys);
  return std::int64_t{sizeof(T)} *
         (keys * e.width + e.keys * head::whole(e.value_width) + head::tallest * keys);
}

template <class T>
constexpr std::int64_t attention_gradient_scratch(const attention_extents& e) {
  using head = detail::attention_head<T>;
  const std::int64_t keys = head::whole(e.keys);
  const std::int64_t block = std::min(head::block, e.queries);
  return std::int64_t{sizeof(T)} *
         (keys * (e.width + e.value_width) + e.keys * head::whole(e.width) +
          block * (head::whole(e.width) + head::whole(e.value_width) + 2 * keys));
}

template <class T>
void attention(work_range units, const attention_extents& e, T scale, heads_view<const T> q,
               heads_view<const T> k, heads_view<const T> v, heads_view<T> y, std::byte* scratch) {
  using head = detail::attention_head<T>;
  const std::int64_t row = head::whole(e.keys);
  T* const packed_k = reinterpret_cast<T*>(scratch);
  T* const packed_v = packed_k + row * e.width;
  T* const weights = packed_v + e.keys * head::whole(e.value_width);
  for (int u = units.first; u < units.last; ++u) {
    head::pack_transposed(k.of(e, u), k.place, e.keys, e.width, packed_k);
    head::pack_rows(v.of(e, u), v.place, e.keys, e.value_width, packed_v);
    head::for_each_tile(0, e.queries, [&](int first, int height) {
      const int seen = e.causal ? std::min(e.keys, first + height) : e.keys;
      head::multiply(height, (seen + head::L - 1) / head::L * head::L, e.width,
                     q.of(e, u) + first * q.place, q.place, 1, packed_k, e.width, weights, row,
                     false);
      for (int i = 0; i < height; ++i) {
        const int n = e.causal ? std::min(e.keys, first + i + 1) : e.keys;
        T* const w = weights + i * row;
        head::multiply_row(w, seen, T(1) / head::powers(w, n, seen, scale));
      }
      head::multiply(height, e.value_width, seen, weights, row, 1, packed_v, e.keys,
                     y.of(e, u) + first * y.place, y.place, false);
    });
  }
}

template <class T>
void attention_gradient(work_range units, const attention_extents& e, T scale,
                        heads_view<const T> q, heads_view<const T> k, heads_view<const T> v,
                        heads_view<const T> dy, heads_view<T> dq, heads_view<T> dk,
                        heads_view<T> dv, std::byte* scratch) {
  using head = detail::attention_head<T>;
  constexpr int L = head::L;
  const std::int64_t row = head::whole(e.keys);
  const int block = std::min(head::block, e.queries);
  T* const k_by_width = reinterpret_cast<T*>(scratch);
  T* const v_by_width = k_by_width + row * e.width;
  T* const k_by_place = v_by_width + row * e.value_width;
  T* const q_by_place = k_by_place + e.keys * head::whole(e.width);
  T* const dy_by_place = q_by_place + block * head::whole(e.width);
  T* const weights = dy_by_place + block * head::whole(e.value_width);
  T* const slopes = weights + block * row;  // gradients of the scores

  for (int u = units.first; u < units.last; ++u) {
    const T* const q0 = q.of(e, u);
    const T* const dy0 = dy.of(e, u);
    head::pack_transposed(k.of(e, u), k.place, e.keys, e.width, k_by_width);
    head::pack_transposed(v.of(e, u), v.place, e.keys, e.value_width, v_by_width);
    head::pack_rows(k.of(e, u), k.place, e.keys, e.width, k_by_place);
    for (int from = 0; from < e.queries; from += block) {
      const int to = std::min(from + block, e.queries);
      head::pack_rows(q0 + from * q.place, q.place, to - from, e.width, q_by_place);
      head::pack_rows(dy0 + from * dy.place, dy.place, to - from, e.value_width, dy_by_place);
      head::for_each_tile(from, to, [&](int first, int height) {
        const int seen = e.causal ? std::min(e.keys, first + height) : e.keys;
        const int wide = (seen + L - 1) / L * L;
        T* const w0 = weights + (first - from) * row;
        T* const s0 = slopes + (first - from) * row;
        head::multiply(height, wide, e.width, q0 + first * q.place, q.place, 1, k_by_width, e.width,
                       w0, row, false);
        head::multiply(height, wide, e.value_width, dy0 + first * dy.place, dy.place, 1, v_by_width,
                       e.value_width, s0, row, false);
        // The sums over queries below read a tile of keys beyond what the first of them sees.
        const int end = int(std::min<std::int64_t>(row, seen + head::tallest + L));
        for (int i = 0; i < height; ++i) {
          const int n = e.causal ? std::min(e.keys, first + i + 1) : e.keys;
          T* const w = w0 + i * row;
          T* const s = s0 + i * row;
          const vec<T> share(T(1) / head::powers(w, n, end, scale));
          vec<T> mean(T(0));
          for (int j = 0; j < n; j += L) {
            const vec<T> p = load(w + j) * share;
            store(w + j, p);
            // A panel's columns without a key hold zeros, and weights of unseen keys are zero.
            mean = multiply_add(p, load(s + j), mean);
          }
          const vec<T> offset(sum(mean));
          for (int j = 0; j < n; j += L)
            store(s + j, load(w + j) * (load(s + j) - offset) * vec<T>(scale));
          for (int j = (n + L - 1) / L * L; j < end; j += L) store(s + j, vec<T>(T(0)));
        }
        head::multiply(height, e.width, seen, s0, row, 1, k_by_place, e.keys,
                       dq.of(e, u) + first * dq.place, dq.place, false);
      });
      // Sums over the queries of the block; keys that an earlier block has seen are added to.
      const auto sum_over_queries = [&](int key, int height, bool add) {
        const int first = e.causal ? std::max(from, key) : from;
        const std::int64_t skipped = first - from;
        head::multiply(height, e.value_width, to - first, weights + skipped * row + key, 1, row,
                       dy_by_place + skipped * head::columns, to - from,
                       dv.of(e, u) + key * dv.place, dv.place, add);
        head::multiply(height, e.width, to - first, slopes + skipped * row + key, 1, row,
                       q_by_place + skipped * head::columns, to - from,
                       dk.of(e, u) + key * dk.place, dk.place, add);
      };
      const int known = e.causal || from == 0 ? from : e.keys;
      head::for_each_tile(0, known,
                          [&](int k0, int height) { sum_over_queries(k0, height, true); });
      head::for_each_tile(known, e.causal ? to : e.keys,
                          [&](int k0, int height) { sum_over_queries(k0, height, false); });
    }
  }
}

}  // namespace cella::cpu
