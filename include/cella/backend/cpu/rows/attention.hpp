// Attention as one kernel: scores, softmax and weighted sum for a few queries at a time, and its
// gradient, which computes the weights again. Nothing of the size queries x keys is stored; what a
// causal query does not see is skipped.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/gemm/tile.hpp>
#include <cella/backend/cpu/simd/compiled_once.hpp>
#include <cella/backend/cpu/simd/math.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cstddef>
#include <cstdint>

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

/// The gradients of q, k and v for the gradient dy of y, which overlap none of the operands. As
/// many queries as keys.
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

  /// `rows` rows of `width` elements as panels of a product that sums over the width.
  static void pack_transposed(const T* from, std::int64_t row, int rows, int width, T* to) {
    for (int i = 0; i < rows; i += columns, to += std::int64_t{width} * columns)
      pack_panel(std::min(columns, rows - i), width, from + i * row, row, 1, to, columns);
  }

  /// The second operand of a product: row k of its strip s of `columns` at
  /// `data + s * strip + k * row`.
  struct strips {
    const T* data;
    std::int64_t row, strip;
  };
  static strips panels(const T* data, std::int64_t depth) {
    return {data, columns, depth * columns};
  }
  /// As they lie in memory. To pack them would cost more: each is read a few times only, and
  /// tiles ask for the rows that come.
  static strips in_place(const T* data, std::int64_t row) { return {data, row, columns}; }

  /// c[i][j] (+)= sum over k < depth of a(i, k) b(k, j) for `height` rows and `width` columns.
  static void multiply(int height, int width, int depth, const T* a, std::int64_t a_row,
                       std::int64_t a_column, const strips& b, T* c, std::int64_t c_row,
                       bool accumulate) {
    for (int j = 0; j < width; j += columns) {
      const int here = std::min(columns, width - j);
      const int vectors = (here + L - 1) / L;
      const tile_task<T> task{.depth = depth,
                              .a = a,
                              .a_row = a_row,
                              .a_column = a_column,
                              .b = b.data + j / columns * b.strip,
                              .b_row = b.row,
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

  /// How many keys a query sees.
  static int seen(const attention_extents& e, int query) {
    return e.causal ? std::min(e.keys, query + 1) : e.keys;
  }

  /// Turns the scores of the queries [first, first + height) into e^(scale (score - largest)), and
  /// what follows the keys that one sees, up to `end`, into zeros; `sums` has the sum of each row.
  /// Rows lie aligned and with room for whole vectors. Calls `beside(i)` for each row, for work
  /// that has time.
  ///
  /// One pass at a time over all rows: the end of a row's sum is a long chain, during which the
  /// next rows run.
  template <class F>
  static void powers(const attention_extents& e, int first, int height, int end, T scale, T* rows,
                     std::int64_t row, T* sums, F beside) {
    T offsets[tallest];
    for (int i = 0; i < height; ++i)
      offsets[i] = -scale * largest(rows + i * row, seen(e, first + i));
    const vec<T> factor(scale);
    for (int i = 0; i < height; ++i) {
      beside(i);
      T* const w = rows + i * row;
      const int n = seen(e, first + i);
      const vec<T> offset(offsets[i]);
      vec<T> total(T(0));
      int j = 0;
      for (; j + L <= n; j += L) {
        const vec<T> p = exponential<T>(multiply_add(load(w + j), factor, offset));
        total = total + p;
        store(w + j, p);
      }
      if (j < n) {
        const vec<T> p =
            keep(first_bits(n - j), exponential<T>(multiply_add(load(w + j), factor, offset)));
        total = total + p;
        store(w + j, p);
        j += L;
      }
      for (; j < end; j += L) store(w + j, vec<T>(T(0)));
      sums[i] = sum(total);
    }
  }

  /// Asks for the `width` elements of a unit at a place.
  static void ask_for(const attention_extents& e, const heads_view<const T>& x, int unit, int place,
                      int width) {
    const T* const row = x.of(e, unit) + place * x.place;
    for (int j = 0; j < width; j += int(64 / sizeof(T))) __builtin_prefetch(row + j, 0, 2);
  }
};

}  // namespace detail

template <class T>
constexpr std::int64_t attention_scratch(const attention_extents& e) {
  using head = detail::attention_head<T>;
  const std::int64_t keys = head::whole(e.keys);
  return std::int64_t{sizeof(T)} * (keys * e.width + head::tallest * keys);
}

template <class T>
constexpr std::int64_t attention_gradient_scratch(const attention_extents& e) {
  using head = detail::attention_head<T>;
  const std::int64_t keys = head::whole(e.keys);
  const std::int64_t block = std::min(head::block, e.queries);
  return std::int64_t{sizeof(T)} * (keys * (e.width + e.value_width) + block * 2 * keys);
}

template <class T>
void attention(work_range units, const attention_extents& e, T scale, heads_view<const T> q,
               heads_view<const T> k, heads_view<const T> v, heads_view<T> y, std::byte* scratch) {
  using head = detail::attention_head<T>;
  const std::int64_t row = head::whole(e.keys);
  T* const packed_k = reinterpret_cast<T*>(scratch);
  T* const weights = packed_k + row * e.width;
  for (int u = units.first; u < units.last; ++u) {
    head::pack_transposed(k.of(e, u), k.place, e.keys, e.width, packed_k);
    head::for_each_tile(0, e.queries, [&](int first, int height) {
      const int seen = head::seen(e, first + height - 1);
      head::multiply(height, (seen + head::L - 1) / head::L * head::L, e.width,
                     q.of(e, u) + first * q.place, q.place, 1, head::panels(packed_k, e.width),
                     weights, row, false);
      T sums[head::tallest];
      head::powers(e, first, height, seen, scale, weights, row, sums, [&](int i) {
        if (u + 1 == units.last) return;
        head::ask_for(e, q, u + 1, first + i, e.width);
        if (first + i >= e.keys) return;
        head::ask_for(e, k, u + 1, first + i, e.width);
        head::ask_for(e, v, u + 1, first + i, e.value_width);
      });
      for (int i = 0; i < height; ++i) {
        const vec<T> share(T(1) / sums[i]);
        for (T *w = weights + i * row, *end = w + seen; w < end; w += head::L)
          store(w, load(w) * share);
      }
      head::multiply(height, e.value_width, seen, weights, row, 1,
                     head::in_place(v.of(e, u), v.place), y.of(e, u) + first * y.place, y.place,
                     false);
    });
  }
}
CELLA_COMPILED_FOR_FLOATS(attention);

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
  T* const weights = v_by_width + row * e.value_width;
  T* const slopes = weights + block * row;  // gradients of the scores

  for (int u = units.first; u < units.last; ++u) {
    const T* const q0 = q.of(e, u);
    const T* const dy0 = dy.of(e, u);
    head::pack_transposed(k.of(e, u), k.place, e.keys, e.width, k_by_width);
    head::pack_transposed(v.of(e, u), v.place, e.keys, e.value_width, v_by_width);
    for (int from = 0; from < e.queries; from += block) {
      const int to = std::min(from + block, e.queries);
      head::for_each_tile(from, to, [&](int first, int height) {
        const int seen = head::seen(e, first + height - 1);
        const int wide = (seen + L - 1) / L * L;
        T* const w0 = weights + (first - from) * row;
        T* const s0 = slopes + (first - from) * row;
        head::multiply(height, wide, e.width, q0 + first * q.place, q.place, 1,
                       head::panels(k_by_width, e.width), w0, row, false);
        head::multiply(height, wide, e.value_width, dy0 + first * dy.place, dy.place, 1,
                       head::panels(v_by_width, e.value_width), s0, row, false);
        // The sums over queries below read a tile of keys beyond what the first of them sees.
        const int end = int(std::min<std::int64_t>(row, seen + head::tallest + L));
        T sums[head::tallest], means[head::tallest];
        head::powers(e, first, height, end, scale, w0, row, sums, [&](int i) {
          if (u + 1 == units.last) return;
          head::ask_for(e, q, u + 1, first + i, e.width);
          head::ask_for(e, k, u + 1, first + i, e.width);
          head::ask_for(e, v, u + 1, first + i, e.value_width);
          head::ask_for(e, dy, u + 1, first + i, e.value_width);
        });
        for (int i = 0; i < height; ++i) {
          const int n = head::seen(e, first + i);
          T* const w = w0 + i * row;
          const T* const s = s0 + i * row;
          const vec<T> share(T(1) / sums[i]);
          vec<T> mean(T(0));
          for (int j = 0; j < n; j += L) {
            const vec<T> p = load(w + j) * share;
            store(w + j, p);
            // A panel's columns without a key hold zeros, and weights of unseen keys are zero.
            mean = multiply_add(p, load(s + j), mean);
          }
          means[i] = sum(mean);
        }
        for (int i = 0; i < height; ++i) {
          const int n = head::seen(e, first + i);
          const T* const w = w0 + i * row;
          T* const s = s0 + i * row;
          const vec<T> offset(means[i]);
          for (int j = 0; j < n; j += L)
            store(s + j, load(w + j) * (load(s + j) - offset) * vec<T>(scale));
          for (int j = (n + L - 1) / L * L; j < end; j += L) store(s + j, vec<T>(T(0)));
        }
        head::multiply(height, e.width, seen, s0, row, 1, head::in_place(k.of(e, u), k.place),
                       dq.of(e, u) + first * dq.place, dq.place, false);
      });
      // Sums over the queries of the block; keys that an earlier block has seen are added to.
      const auto sum_over_queries = [&](int key, int height, bool add) {
        const int first = e.causal ? std::max(from, key) : from;
        const std::int64_t skipped = first - from;
        head::multiply(height, e.value_width, to - first, weights + skipped * row + key, 1, row,
                       head::in_place(dy0 + first * dy.place, dy.place),
                       dv.of(e, u) + key * dv.place, dv.place, add);
        head::multiply(height, e.width, to - first, slopes + skipped * row + key, 1, row,
                       head::in_place(q0 + first * q.place, q.place), dk.of(e, u) + key * dk.place,
                       dk.place, add);
      };
      const int known = e.causal || from == 0 ? from : e.keys;
      head::for_each_tile(0, known,
                          [&](int k0, int height) { sum_over_queries(k0, height, true); });
      head::for_each_tile(known, e.causal ? to : e.keys,
                          [&](int k0, int height) { sum_over_queries(k0, height, false); });
    }
  }
}
CELLA_COMPILED_FOR_FLOATS(attention_gradient);

}  // namespace cella::cpu
