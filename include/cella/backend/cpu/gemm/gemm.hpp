// Matrix products of plain tensors: C = A B for operands with any strides, single or in batches.
// Extents are run-time values; the epilogue is a sink (sink.hpp). The product itself is a struct
// (product.hpp); how it is computed, gemm_plan.hpp decides.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/gemm/driver.hpp>
#include <cella/backend/cpu/gemm/gemm_plan.hpp>
#include <cella/backend/cpu/gemm/matvec.hpp>
#include <cella/backend/cpu/gemm/product.hpp>
#include <cella/backend/cpu/loops/sink.hpp>
#include <cella/backend/cpu/simd/compiled_once.hpp>
#include <cella/backend/cpu/simd/simd.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace cella::cpu {

/// Packs B of a product once, for many uses: strips of columns, each for itself.
template <class T, class S>
constexpr int gemm_pack_units(const product<T, S>& p) {
  return (p.columns + register_tile<T>::columns - 1) / register_tile<T>::columns;
}
template <class T, class S>
constexpr std::int64_t gemm_packed_elements(const product<T, S>& p) {
  return std::int64_t{gemm_pack_units(p)} * register_tile<T>::columns * words_of<S>(p.depth);
}
template <class T, class S>
void gemm_pack(const product<T, S>& p, T* to, work_range strips) {
  constexpr int wide = register_tile<T>::columns;
  for (int s = strips.first; s < strips.last; ++s)
    pack_words(std::min(wide, p.columns - s * wide), p.depth, p.b.data + s * wide * p.b.column,
               p.b.column, p.b.row, to + std::int64_t{s} * wide * words_of<S>(p.depth), wide);
}

/// Independent units of work in a product. Results do not depend on how they are shared out.
template <class T, class S>
constexpr int gemm_units(const product<T, S>& p);

/// Bytes that `gemm` needs as scratch, for each thread that runs a part of it.
template <class T, class S>
constexpr std::int64_t gemm_scratch(const product<T, S>& p);

/// Computes the given units and hands every element of C to `sink` exactly once. `scratch`: see
/// gemm_scratch; aligned to 64 bytes; may be null where nothing is needed. C must not overlap A, B
/// or the scratch. A depth of 0 gives zeros.
template <class T, class S, class Sink>
void gemm(const product<T, S>& p, const Sink& sink, std::byte* scratch, work_range units);

/// All of it on the calling thread.
template <class T, class S, class Sink>
void gemm(const product<T, S>& p, const Sink& sink, std::byte* scratch) {
  gemm(p, sink, scratch, {0, gemm_units(p)});
}

namespace detail {

/// A product of plain matrices whose C begins at `offset`.
template <class T, class S>
struct product_source {
  static constexpr bool indirect = false;
  const product<T, S>& p;
  const blocking<T>& plan;
  std::int64_t offset;
  const any_sink<T>& sink;

  static constexpr int together = summands_of_word<S>;

  void begin(int) const {}
  int depth(int pass) const { return words_of<S>(summands(pass)); }
  int summands(int pass) const {
    return std::min(plan.depth * together, p.depth - pass * plan.depth * together);
  }
  matrix<S> a(int pass) const {
    const std::int64_t k = std::int64_t{pass} * plan.depth * together;
    return {p.a.data + k * p.a.column, p.a.row, p.a.column};
  }
  matrix<S> b(int pass, int strip) const {
    const std::int64_t k = std::int64_t{pass} * plan.depth * together;
    const std::int64_t j = std::int64_t{strip} * plan.tile_columns;
    return {p.b.data + k * p.b.row + j * p.b.column, p.b.row, p.b.column};
  }
  void find_b(int pass, int strip, tile_task<T>& task) const {
    if (p.packed_b) {
      const std::int64_t words = words_of<S>(p.depth);
      task.b = p.packed + (strip * words + pass * plan.depth) * plan.tile_columns;
      task.b_row = plan.tile_columns;
    } else if constexpr (std::is_same_v<S, T>) {
      task.b = b(pass, strip).data;
      task.b_row = p.b.row;
    }
  }
  tile_output<T> output(int row, int column) const {
    return output_of(sink, offset + row * p.c_row + column, p.c_row);
  }
  int list_rows(int row, int height, int strip, const void** to, int most) const {
    return sink.list_rows(height, offset + row * p.c_row + strip * plan.tile_columns, p.c_row, to,
                          most);
  }
  void finish(const T* tile, std::int64_t tile_row, int row, int height, int strip) const {
    const int column = strip * plan.tile_columns;
    sink.hand_over(tile, tile_row, height, plan.width(strip), offset + row * p.c_row + column,
                   p.c_row, row, column);
  }
};

/// Tiles of a product whose operands are read `in_place`, without the loops over blocks, which for
/// small matrices cost more than the tiles. `exchanged`: each is transposed before it is handed
/// over.
template <class T>
void multiply_in_place(const product<T>& p, const blocking<T>& plan, bool exchanged,
                       work_range units, std::int64_t offset, const any_sink<T>& sink) {
  constexpr int L = lanes<T>, tile_columns = blocking<T>::tile_columns;
  alignas(64) T tile[register_tile<T>::rows * tile_columns];
  alignas(64) T turned[panel_rows * tile_columns];
  std::array<const void*, most_rows> listed;
  side_prefetch nothing;
  tile_task<T> task{};
  task.depth = p.depth;
  task.a_row = p.a.row;
  task.a_column = p.a.column;
  task.b_row = p.b.row;
  // What the epilogue touches is asked for, unless it is so little that it is near anyhow.
  const bool far = std::int64_t{p.rows} * p.columns * std::int64_t{sizeof(T)} > (16 << 10);
  const bool deep = std::is_same_v<T, float> && p.depth > deepest_piece;
  if (deep) std::fill(std::begin(tile), std::end(tile), T(0));
  int strip = units.first / plan.row_tiles, t = units.first % plan.row_tiles;
  for (int left = units.size(); left > 0; ++strip, t = 0) {
    const int column = strip * tile_columns, width = plan.width(strip);
    const int vectors = (width + L - 1) / L;
    task.last = width - (vectors - 1) * L;
    task.b = p.b.data + column;
    for (; left > 0 && t < plan.row_tiles; ++t, --left) {
      const int i = plan.first_row(t), height = plan.first_row(t + 1) - i;
      // The part of C that this is.
      const int row = exchanged ? column : i, first = exchanged ? i : column;
      const int rows_of_c = exchanged ? width : height;
      const std::int64_t at = offset + row * p.c_row + first;
      const tile_output<T> output =
          exchanged || deep ? tile_output<T>{} : output_of(sink, at, p.c_row);
      task.a = p.a.data + i * p.a.row;
      task.c = output.c ? output.c : tile;
      task.c_row = output.c ? output.row : tile_columns;
      task.accumulate = output.add;
      side_rows rows{listed.data(), 0};
      if (!output.c && far)
        rows.steps = sink.list_rows(rows_of_c, at, p.c_row, listed.data(), int(listed.size()));
      const auto multiply_piece = [&] {
        if (plan.a_along_rows)
          multiply_ahead(height, vectors, task, rows);
        else
          multiply_beside<tile_form::strided>(height, vectors, task, nothing, rows);
      };
      if (deep)
        multiply_in_pieces(height, vectors, task, multiply_piece);
      else
        multiply_piece();
      if (exchanged) {
        pack_panel(height, width, tile, tile_columns, 1, turned, panel_rows);
        sink.hand_over(turned, panel_rows, width, height, at, p.c_row, row, first);
      } else if (!output.c) {
        sink.hand_over(tile, tile_columns, height, width, at, p.c_row, row, first);
      }
    }
  }
}

/// Copies `count` elements that lie `step` apart.
template <class T, class S>
void gather_row(const S* from, std::int64_t step, int count, T* to) {
  for (int k = 0; k < count; ++k) to[k] = static_cast<T>(from[k * step]);
}

/// Units of `dot_rows`: lanes<T> columns, all rows.
template <class T, class S>
void multiply_dot_rows(const product<T, S>& p, work_range units, std::int64_t offset,
                       const any_sink<T>& sink, T* scratch) {
  constexpr int L = lanes<T>;
  const T* a = scratch;
  std::int64_t a_row = p.depth;
  if (copies_vectors(p)) {
    for (int i = 0; i < p.rows; ++i)
      gather_row(p.a.data + i * p.a.row, p.a.column, p.depth, scratch + std::int64_t{i} * p.depth);
  } else if constexpr (std::is_same_v<S, T>) {
    a = p.a.data;
    a_row = p.a.row;
  }
  const bool far = is_far<S>(std::int64_t{p.columns} * p.depth * (p.b_batch ? p.batch : 1));
  alignas(64) T sums[L];
  for (int u = units.first; u < units.last; ++u) {
    const int j = u * L, count = std::min(L, p.columns - j);
    for (int i = 0; i < p.rows; ++i) {
      store(sums,
            dot_rows<T>(p.b.data + j * p.b.column, p.b.column, a + i * a_row, count, p.depth, far));
      sink.hand_over(sums, L, 1, count, offset + i * p.c_row + j, 0, i, j);
    }
  }
}

/// Units of `dot_columns`: lanes<T> rows.
template <class T, class S>
void multiply_dot_columns(const product<T, S>& p, work_range units, std::int64_t offset,
                          const any_sink<T>& sink, T* scratch) {
  constexpr int L = lanes<T>;
  const T* b = scratch;
  if (copies_vectors(p))
    gather_row(p.b.data, p.b.row, p.depth, scratch);
  else if constexpr (std::is_same_v<S, T>)
    b = p.b.data;
  const bool far = is_far<S>(std::int64_t{p.rows} * p.depth * (p.a_batch ? p.batch : 1));
  for (int u = units.first; u < units.last; ++u) {
    const int i = u * L, count = std::min(L, p.rows - i);
    const vec<T> dots = dot_rows<T>(p.a.data + i * p.a.row, p.a.row, b, count, p.depth, far);
    if (sink.target() && !sink.adds() && p.c_row == 1) {
      store_first(sink.target() + offset + i, count, dots);
      continue;
    }
    alignas(64) T sums[L];
    store(sums, dots);
    sink.hand_over(sums, 1, count, 1, offset + i * p.c_row, p.c_row, i, 0);
  }
}

/// Units of `sum_rows`: 8 * lanes<T> columns.
template <class T, class S>
void multiply_sum_rows(const product<T, S>& p, work_range units, std::int64_t offset,
                       const any_sink<T>& sink) {
  constexpr int L = lanes<T>, wide = gemm_plan<T>::wide;
  alignas(64) T sums[wide];
  const int end = std::min(units.last * wide, p.columns);
  for (int j = units.first * wide, width = 0; j < end; j += width) {
    const auto sum = [&]<int Vectors>() {
      width = std::min(end - j, Vectors * L);
      sum_columns<T, Vectors>(p.b.data + j, p.b.row, p.a.data, p.a.column, width, p.depth, sums);
    };
    const int vectors = (end - j + L - 1) / L;
    if (vectors >= 8) {
      sum.template operator()<8>();
    } else if (vectors >= 4) {
      sum.template operator()<4>();
    } else if (vectors >= 2) {
      sum.template operator()<2>();
    } else {
      sum.template operator()<1>();
    }
    sink.hand_over(sums, wide, 1, width, offset + j, 0, 0, j);
  }
}

template <class T, class S>
void multiply(const product<T, S>& p, const any_sink<T>& sink, std::byte* scratch,
              work_range units) {
  T* const elements = reinterpret_cast<T*>(scratch);
  const gemm_plan<T> plan(p);
  const int each = plan.units;
  for (int unit = units.first; unit < units.last;) {
    const int index = unit / each;
    const work_range part{unit - index * each, std::min(each, units.last - index * each)};
    unit += part.size();
    product<T, S> one = p;
    const int inner = index % p.batch, outer = index / p.batch;
    one.a.data += inner * p.a_batch + outer * p.a_outer;
    if (!p.packed_b) one.b.data += inner * p.b_batch + outer * p.b_outer;
    const std::int64_t offset = inner * p.c_batch + outer * p.c_outer;
    switch (plan.method) {
      case gemm_method::dot_rows:
        multiply_dot_rows(one, part, offset, sink, elements);
        break;
      case gemm_method::sum_rows:
        multiply_sum_rows(one, part, offset, sink);
        break;
      case gemm_method::dot_columns:
        multiply_dot_columns(one, part, offset, sink, elements);
        break;
      default: {
        if constexpr (std::is_same_v<S, T>) {
          if (!p.packed_b && plan.blocks.in_place()) {
            multiply_in_place(plan.exchanged ? exchange(one) : one, plan.blocks, plan.exchanged,
                              part, offset, sink);
            break;
          }
        }
        product_source<T, S> source{one, plan.blocks, offset, sink};
        multiply_units(plan.blocks, part, source, elements);
      }
    }
  }
}
CELLA_COMPILED_ONCE(multiply<float, float>);
CELLA_COMPILED_ONCE(multiply<double, double>);

}  // namespace detail

template <class T, class S>
constexpr int gemm_units(const product<T, S>& p) {
  return std::max(0, p.batch) * p.outer * detail::gemm_plan<T>(p).units;
}

template <class T, class S>
constexpr std::int64_t gemm_scratch(const product<T, S>& p) {
  const detail::gemm_plan<T> plan(p);
  std::int64_t elements = plan.blocks.scratch();
  if (detail::copies_vectors(p))
    elements = plan.method == detail::gemm_method::dot_rows ? std::int64_t{p.rows} * p.depth
                                                            : std::int64_t{p.depth};
  return elements * std::int64_t{sizeof(T)};
}

template <class T, class S, class Sink>
void gemm(const product<T, S>& p, const Sink& sink, std::byte* scratch, work_range units) {
  detail::multiply(p, detail::any_sink<T>(sink), scratch, units);
}

}  // namespace cella::cpu
