// Products of matrices of bytes with or without a sign, each less its zero: the product of u8 and
// s8 that the machine has, and what sums of rows and columns correct.
#pragma once

#include <cella/backend/cpu/gemm/byte_product.hpp>
#include <cella/plan/memory.hpp>

namespace cella::cpu {

/// Bytes, and what is subtracted from them: one zero for all, or one for each slice.
struct zeroed_bytes {
  const std::uint8_t* data{};
  const std::uint8_t* zeros{};
  int zero_count = 1;
  bool has_sign{};

  // A byte and its zero may be moved by 128 together: as u8, or as s8.

  std::int32_t zero_as_u8(std::int64_t i) const { return zero(i) ^ (has_sign ? 0x80 : 0); }
  std::int32_t zero_as_s8(std::int64_t i) const {
    return static_cast<std::int8_t>(zero(i) ^ (has_sign ? 0 : 0x80));
  }

 private:
  std::uint8_t zero(std::int64_t i) const { return zeros[zero_count == 1 ? 0 : i % zero_count]; }
};

/// c[n,i,j] = sum over k of (a[n,i,k] - u[i]) (b[n,k,j] - v[j]) modulo 2^32, all row-major.
struct integer_product {
  int batch = 1, rows{}, columns{}, depth{};
  zeroed_bytes a{}, b{};
  std::int32_t* c{};

  /// What a unit computes: so many rows and columns.
  static constexpr int unit_rows = (has_matrix_unit ? 4 : 8) * detail::byte_rows<matrix_unit>;
  static constexpr int unit_columns = 4 * detail::byte_columns<matrix_unit>;
  constexpr int row_units() const { return (rows + unit_rows - 1) / unit_rows; }
  constexpr int column_units() const { return (columns + unit_columns - 1) / unit_columns; }
};
constexpr int integer_product_units(const integer_product& p) {
  return p.batch * p.row_units() * p.column_units();
}
constexpr std::int64_t integer_product_scratch(const integer_product& p);
inline void multiply_integers(const integer_product& p, work_range units, std::byte* scratch);

namespace detail {

/// Parts of scratch, one behind the other.
class byte_scratch {
 public:
  explicit byte_scratch(std::byte* first) : at_(first) {}
  template <class T>
  T* take(std::int64_t count) {
    T* const part = reinterpret_cast<T*>(at_);
    at_ += align_up(count * std::int64_t{sizeof(T)});
    return part;
  }

 private:
  std::byte* at_;
};

inline void flip_signs(const std::uint8_t* from, std::int64_t count, std::uint8_t* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i] ^ 0x80;
}
/// Sums of 32 bits are corrected modulo 2^32.
constexpr std::uint32_t residue(std::int64_t x) { return static_cast<std::uint32_t>(x); }

}  // namespace detail

constexpr std::int64_t integer_product_scratch(const integer_product& p) {
  constexpr int rows = detail::byte_rows<matrix_unit>, columns = integer_product::unit_columns;
  return align_up(4 * byte_packed_words(columns, p.depth)) +
         align_up(byte_product_scratch(p.depth)) + align_up(std::int64_t{rows} * p.depth) +
         align_up(std::int64_t{columns} * p.depth) + align_up(4 * columns) + align_up(4 * columns);
}

inline void multiply_integers(const integer_product& p, work_range units, std::byte* scratch) {
  constexpr int rows = detail::byte_rows<matrix_unit>, columns = integer_product::unit_columns;
  detail::byte_scratch parts(scratch);
  auto* const packed = parts.take<std::uint32_t>(byte_packed_words(columns, p.depth));
  auto* const own = parts.take<std::byte>(byte_product_scratch(p.depth));
  auto* const left = parts.take<std::uint8_t>(std::int64_t{rows} * p.depth);
  auto* const right = parts.take<std::uint8_t>(std::int64_t{columns} * p.depth);
  auto* const column_sums = parts.take<std::int32_t>(columns);
  auto* const zeros = parts.take<std::int32_t>(columns);
  int there = -1;
  bool any_zero = false;
  for (int u = units.first; u < units.last; ++u) {
    const int strip = u / p.row_units(), first_row = u % p.row_units() * integer_product::unit_rows;
    const int n = strip / p.column_units(), column = strip % p.column_units() * columns;
    const int width = std::min(columns, p.columns - column);
    if (strip != there) {
      there = strip;
      // Matrices of the batch lie one behind the other, as rows do.
      const std::uint8_t* b = p.b.data + std::int64_t{n} * p.depth * p.columns + column;
      std::int64_t step = p.columns;
      if (!p.b.has_sign) {
        for (int k = 0; k < p.depth; ++k)
          detail::flip_signs(b + k * step, width, right + std::int64_t{k} * width);
        b = right;
        step = width;
      }
      const auto* const s = reinterpret_cast<const std::int8_t*>(b);
      byte_pack({0, width, p.depth, {}, {s, step, 1}}, packed, {0, byte_pack_units(width)});
      std::fill_n(column_sums, width, 0);
      for (int k = 0; k < p.depth; ++k)
        for (int j = 0; j < width; ++j) column_sums[j] += s[k * step + j];
      any_zero = false;
      for (int j = 0; j < width; ++j) any_zero |= (zeros[j] = p.b.zero_as_s8(column + j)) != 0;
    }
    const int end = std::min(first_row + integer_product::unit_rows, p.rows);
    for (int row = first_row; row < end; row += rows) {
      const int height = std::min(rows, end - row);
      const std::uint8_t* a = p.a.data + (std::int64_t{n} * p.rows + row) * p.depth;
      if (p.a.has_sign) {
        detail::flip_signs(a, std::int64_t{height} * p.depth, left);
        a = left;
      }
      std::int32_t* const c = p.c + (std::int64_t{n} * p.rows + row) * p.columns + column;
      byte_multiply({height, width, p.depth, {a, p.depth, 1}, {}, c, p.columns}, packed, own,
                    {0, byte_product_units(height)});
      for (int i = 0; i < height; ++i) {
        const std::uint32_t zero = detail::residue(p.a.zero_as_u8(row + i));
        if (zero == 0 && !any_zero) continue;
        std::int64_t sum = 0;
        for (int k = 0; any_zero && k < p.depth; ++k) sum += a[std::int64_t{i} * p.depth + k];
        const std::uint32_t of_row = detail::residue(p.depth) * zero - detail::residue(sum);
        std::int32_t* const y = c + std::int64_t{i} * p.columns;
        for (int j = 0; j < width; ++j)
          y[j] =
              static_cast<std::int32_t>(detail::residue(y[j]) + detail::residue(zeros[j]) * of_row -
                                        zero * detail::residue(column_sums[j]));
      }
    }
  }
}

}  // namespace cella::cpu
