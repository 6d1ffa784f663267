// How a matrix product is computed: by dot products, as a sum of rows or in tiles, and which of its
// operands are packed.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/gemm/blocking.hpp>
#include <cella/backend/cpu/gemm/product.hpp>
#include <cstdint>
#include <type_traits>

namespace cella::cpu::detail {

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
      cut(p);
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
        cut(turned);
        exchanged = blocks.in_place();
      }
      if (!exchanged) cut(p);
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
  template <class S>
  constexpr void cut(const product<T, S>& p) {
    blocks = blocking<T>(p.rows, p.columns, on_unit<S>);
    choose_packing(p);
  }
  // Packing pays for an operand that is read often, or that lies badly: far strides cost a cache
  // line and a page each. The limits were measured.
  template <class S>
  constexpr void choose_packing(const product<T, S>& p) {
    constexpr std::int64_t small_cache = 32 * 1024, far_cache = 4 << 20, page = 4096,
                           size = sizeof(S);
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
    constexpr int cache = 1 << 20, block = cache * 9 / 16 / int(sizeof(T));
    // Depths are those of panels, in words; chains of sums are equally long in all types.
    const int words = words_of<S>(p.depth);
    // B beyond the far cache is read again for each block of A: less deep ones have more rows.
    // Products of 2,048 cubed took a tenth more time without, on a processor with AVX2.
    const bool far_b = few_vector_registers && bytes_of_b > far_cache &&
                       std::int64_t{p.rows} * words > 2 * std::int64_t{block};
    const int bytes = far_b ? 1024 : blocks.a_along_rows ? 2048 : 4096;
    const int deepest = bytes / int(sizeof(T)) / summands_of_word<S>;
    int passes = packs ? std::max(1, (words + deepest - 1) / deepest) : 1;
    constexpr int together = words_together<S>;
    const int depth = ((words + passes - 1) / passes + together - 1) / together * together;
    if (depth > 0) passes = (words + depth - 1) / depth;
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

}  // namespace cella::cpu::detail
