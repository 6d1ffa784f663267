// The pixels that the matrix unit's convolutions (unit_convolution.hpp, unit_weight_gradient.hpp)
// read at once: any of a grid over all samples, neighbours or not.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/blocked/convolution.hpp>

namespace cella::cpu::detail {

/// So many pixels of a product's grid at most; what lies behind the last one is outside of every
/// image.
template <class T, int Most>
struct unit_pixels {
  static constexpr std::int64_t outside = -1;

  int count = 0;
  std::array<std::int64_t, std::size_t(Most)> result;       // pixel of the results, of block 0
  std::array<std::int64_t, std::size_t(Most)> source;       // of the source before the tap
  std::array<std::int32_t, std::size_t(Most)> row, column;  // there
  std::array<std::int64_t, std::size_t(Most)> at;           // of the source, as a tap reads it

  /// The pixels of the grid from `first` on, `most` of them at most.
  void find(const blocked_product<T, 2>& p, std::int64_t first, int most) {
    const std::int64_t source_image = std::int64_t{p.source_blocks} * p.height * p.width;
    const std::int64_t result_image = p.result_blocks * p.result_plane;
    const int grid = p.rows * p.columns;
    count = int(std::min<std::int64_t>(most, p.pixels() - first));
    int n = int(first / grid), i = int(first % grid) / p.columns, j = int(first % grid) % p.columns;
    for (int k = 0; k < count;) {
      const std::int64_t from = n * source_image + std::int64_t{i * p.step_vertical} * p.width;
      const std::int64_t to = n * result_image +
                              std::int64_t{i * p.place_vertical + p.place_row} * p.result_width +
                              p.place_column;
      const int end = k + std::min(count - k, p.columns - j);
      for (; k < end; ++k, ++j) {
        const auto here = std::size_t(k);
        row[here] = i * p.step_vertical;
        column[here] = j * p.step_horizontal;
        source[here] = from + j * p.step_horizontal;
        result[here] = to + j * p.place_horizontal;
      }
      j = 0;
      if (++i == p.rows) i = 0, ++n;
    }
    for (auto k = std::size_t(count); k < std::size_t(Most); ++k) {
      row[k] = -(1 << 20);
      column[k] = 0;
      source[k] = 0;
      result[k] = outside;
    }
  }

  /// Says where a tap reads the source: in `at`.
  void read_for(const blocked_product<T, 2>& p, const blocked_tap& tap) {
    const std::int64_t moved = std::int64_t{tap.row} * p.width + tap.column;
    const auto height = unsigned(p.height), width = unsigned(p.width);
    for (std::size_t k = 0; k < std::size_t(Most); ++k) {
      const bool inside =
          unsigned(row[k] + tap.row) < height && unsigned(column[k] + tap.column) < width;
      at[k] = inside ? source[k] + moved : outside;
    }
  }
};

}  // namespace cella::cpu::detail
