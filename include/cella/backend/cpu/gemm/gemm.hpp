// Matrix products of plain tensors: C = A B for operands with any strides, single or in batches.
// Extents are run-time values; the epilogue is a sink (sink.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/gemm/driver.hpp>
#include <cella/backend/cpu/gemm/matvec.hpp>
#include <cella/backend/cpu/loops/sink.hpp>
#include <cella/backend/cpu/simd/simd.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace cella::cpu {

/// C[i,j] = sum over k of A[i,k] B[k,j] for i < rows, j < columns, k < depth, for each of `batch`
/// products. Element (i, j) of C has the offset `i * c_row + j`, and each further product adds
/// `a_batch`, `b_batch` and `c_batch` elements (0 in A or B: the same matrix for all). It is
/// computed in T; A and B are stored as S.
template <class T, class S = T>
struct product {
  int rows{}, columns{}, depth{};
  matrix<S> a{}, b{};
  std::int64_t c_row{};
  int batch = 1;
  std::int64_t a_batch{}, b_batch{}, c_batch{};
  /// `packed` is what `gemm_pack` made of B, the same for all products of the batch, and `b` does
  /// not count. More than 4 rows and more than one column.
  bool packed_b{};
  const T* packed{};
};

/// Packs B of a product once, for many uses: strips of columns, each for itself.
template <class T, class S>
constexpr int gemm_pack_units(const product<T, S>& p) {
  return (p.columns + register_tile<T>::columns - 1) / register_tile<T>::columns;
}
template <class T, class S>
constexpr std::int64_t gemm_packed_elements(const product<T, S>& p) {
  return std::int64_t{gemm_pack_units(p)} * register_tile<T>::columns * p.depth;
}
template <class T, class S>
void gemm_pack(const product<T, S>& p, T* to, work_range strips) {
  constexpr int wide = register_tile<T>::columns;
  for (int s = strips.first; s < strips.last; ++s)
    pack_panel(std::min(wide, p.columns - s * wide), p.depth, p.b.data + s * wide * p.b.column,
               p.b.column, p.b.row, to + std::int64_t{s} * wide * p.depth, wide);
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

/// The product of which C is the transposed one.
template <class T, class S>
constexpr product<T, S> exchange(product<T, S> p) {
  std::swap(p.rows, p.columns);
  std::swap(p.a, p.b);
  std::swap(p.a_batch, p.b_batch);
  p.a = p.a.transposed();
  p.b = p.b.transposed();
  return p;
}

enum class gemm_method {
  nothing,      // no element
  dot_rows,     // one row (or few) times a transposed matrix: dot products
  sum_rows,     // one row times a matrix: a weighted sum of its rows
  dot_columns,  // a matrix times one column: dot products
  tiles
};

/// How a product is computed: a function of the product alone, so that results are reproducible.
template <class T>
struct gemm_plan {
  gemm_method method{};
  blocking<T> blocks{};
  int units{};       // of one product of the batch
  bool exchanged{};  // C is computed transposed, in place

  static constexpr int L = lanes<T>;
  static constexpr int wide = 8 * L;  // columns of one unit of `sum_rows`
  static constexpr int few_rows = 4;
  static constexpr int few_columns = 28;  // of which a factor is worth reading in place

  template <class S>
  constexpr explicit gemm_plan(const product<T, S>& p) {
    if (p.rows <= 0 || p.columns <= 0 || p.batch <= 0) return;
    if (p.packed_b) {
      method = gemm_method::tiles;
      blocks = blocking<T>(p.rows, p.columns);
      choose_packing(p);
      units = blocks.units();
    } else if (p.rows <= few_rows && p.b.row == 1 && (p.b.column != 1 || p.columns == 1)) {
      method = gemm_method::dot_rows;
      units = (p.columns + L - 1) / L;
    } else if (p.rows == 1 && p.b.column == 1) {
      method = gemm_method::sum_rows;
      units = (p.columns + wide - 1) / wide;
    } else if (p.columns == 1 && p.a.column == 1) {
      method = gemm_method::dot_columns;
      units = (p.rows + L - 1) / L;
    } else {
      method = gemm_method::tiles;
      if (is_narrow(p)) {
        const product<T, S> turned = exchange(p);
        blocks = blocking<T>(turned.rows, turned.columns);
        choose_packing(turned);
        exchanged = blocks.in_place();
      }
      if (!exchanged) {
        blocks = blocking<T>(p.rows, p.columns);
        choose_packing(p);
      }
      units = blocks.units();
    }
  }

 private:
  /// Long columns side by side times few columns: a tile would read A in short pieces of far rows.
  /// Transposed, it reads whole rows of it, once.
  template <class S>
  static constexpr bool is_narrow(const product<T, S>& p) {
    return std::is_same_v<S, T> && p.columns <= few_columns && p.rows >= 4 * few_columns &&
           p.a.row == 1 && p.a.column != 1 && p.b.column == 1 && p.columns > 1;
  }
  // Packing pays for an operand that is read often, or that lies badly: far strides cost a cache
  // line and a page each. The limits were measured.
  template <class S>
  constexpr void choose_packing(const product<T, S>& p) {
    constexpr std::int64_t small_cache = 32 * 1024, page = 4096, size = sizeof(S);
    constexpr bool converts = !std::is_same_v<S, T>;  // which packing does
    const auto bytes_of_b = std::int64_t{p.depth} * p.columns * size;
    const auto bytes_over_a = std::int64_t{p.depth} * p.a.column * size;
    const bool short_b = bytes_of_b <= small_cache || p.rows <= few_columns ||
                         (p.rows <= 56 && p.b.row * size <= page);
    blocks.pack_b = !p.packed_b && (converts || p.b.column != 1 || !short_b);
    blocks.copy_a = converts || (p.a.column != 1 && p.a.row != 1) ||
                    (p.a.column != 1 && blocks.strips >= 2 && bytes_over_a > 16 * small_cache) ||
                    (blocks.strips >= 8 && blocks.row_tiles > 2);
    blocks.a_along_rows = p.a.column != 1 && p.a.row == 1;
    blocks.given_b = p.packed_b;
    blocks.prefetch_b = p.packed_b && bytes_of_b > small_cache;
    const bool packs = blocks.copy_a || blocks.pack_b || p.packed_b;
    // One pass up to a depth at which strips of B and a block of A fit the second-level cache:
    // partial sums cost more than a strip that outgrows the first level. Half of that cache for the
    // only block of A, a quarter for one of several, beside which strips of B are kept. Where A
    // lies column by column, a block is a piece of each of `depth` far rows: fewer and longer
    // pieces are worth another pass.
    constexpr int cache = 1 << 20;
    const int deepest = (blocks.a_along_rows ? 2048 : 4096) / int(sizeof(T));
    const int passes = packs ? std::max(1, (p.depth + deepest - 1) / deepest) : 1;
    const int depth = (p.depth + passes - 1) / passes;
    constexpr int block = cache * 9 / 16 / int(sizeof(T));
    blocks.cut_rows(block, block / 2, depth);
    blocks.set_passes(passes, depth);
    // Threads share the larger operand. Where it is A, they also find their part of it near, and
    // leave theirs of C where it is needed: rows are samples, mostly, and those are always shared
    // so.
    blocks.row_by_row = !blocks.in_place() && p.rows >= p.columns;
    // Without partial sums there is no need to go through A again.
    if (passes == 1 && !blocks.keep_b()) blocks.block_strips = blocks.strips;
  }
};

/// Whether dot products are taken with a copy of the rows of A, or of the column of B: one whose
/// elements lie apart, or are stored in another type.
template <class T, class S>
constexpr bool copies_vectors(const product<T, S>& p) {
  constexpr bool converts = !std::is_same_v<S, T>;
  const gemm_method method = gemm_plan<T>(p).method;
  return (method == gemm_method::dot_rows && (converts || p.a.column != 1)) ||
         (method == gemm_method::dot_columns && (converts || p.b.row != 1));
}

/// A product of plain matrices whose C begins at `offset`.
template <class T, class S>
struct product_source {
  static constexpr bool indirect = false;
  const product<T, S>& p;
  const blocking<T>& plan;
  std::int64_t offset;
  const any_sink<T>& sink;

  void begin(int) const {}
  int depth(int pass) const { return std::min(plan.depth, p.depth - pass * plan.depth); }
  matrix<S> a(int pass) const {
    return {p.a.data + std::int64_t{pass} * plan.depth * p.a.column, p.a.row, p.a.column};
  }
  matrix<S> b(int pass, int strip) const {
    const std::int64_t k = std::int64_t{pass} * plan.depth;
    const std::int64_t j = std::int64_t{strip} * plan.tile_columns;
    return {p.b.data + k * p.b.row + j * p.b.column, p.b.row, p.b.column};
  }
  void find_b(int pass, int strip, tile_task<T>& task) const {
    if (p.packed_b) {
      task.b = p.packed + (std::int64_t{strip} * p.depth + pass * plan.depth) * plan.tile_columns;
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
  alignas(64) T tile[blocking<T>::tile_rows * tile_columns];
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
  alignas(64) T sums[L];
  for (int u = units.first; u < units.last; ++u) {
    const int j = u * L, count = std::min(L, p.columns - j);
    for (int i = 0; i < p.rows; ++i) {
      store(sums,
            dot_rows<T>(p.b.data + j * p.b.column, p.b.column, a + i * a_row, count, p.depth));
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
  for (int u = units.first; u < units.last; ++u) {
    const int i = u * L, count = std::min(L, p.rows - i);
    const vec<T> dots = dot_rows<T>(p.a.data + i * p.a.row, p.a.row, b, count, p.depth);
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
    one.a.data += index * p.a_batch;
    if (!p.packed_b) one.b.data += index * p.b_batch;
    const std::int64_t offset = index * p.c_batch;
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

}  // namespace detail

template <class T, class S>
constexpr int gemm_units(const product<T, S>& p) {
  return std::max(0, p.batch) * detail::gemm_plan<T>(p).units;
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
