// The pixels that the matrix unit's convolutions (unit_convolution.hpp, unit_weight_gradient.hpp)
// read at once: any of a grid over all samples. Where their sources lie a step apart, as those of a
// row do, and with a step of one those of a whole image, they are copied in runs.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/blocked/convolution.hpp>

namespace cella::cpu::detail {

/// So many pixels of a product's grid at most. What lies behind the last one is outside of every
/// image.
template <class T, int Most>
class unit_pixels {
 public:
  /// Pixels [first, last) of these, the first of which is `at` of the image, in block 0.
  struct run {
    int first, last;
    std::int64_t at;
  };

  int count = 0;
  std::array<std::int64_t, std::size_t(Most)> result;  // pixel of the results, of block 0
  // Of what was read last: the runs, whose pixels may be outside of the image, but for those at
  // their ends, and what was listed.
  int run_count = 0, listed_count = 0;
  std::array<run, std::size_t(Most)> runs;
  std::array<std::int32_t, std::size_t(Most)> listed;
  std::int64_t step = 1;  // between the pixels of a run

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
        row_[here] = i * p.step_vertical;
        column_[here] = j * p.step_horizontal;
        source_[here] = from + j * p.step_horizontal;
        result[here] = to + j * p.place_horizontal;
      }
      j = 0;
      if (++i == p.rows) i = 0, ++n;
    }
    for (auto k = std::size_t(count); k < std::size_t(Most); ++k) {
      row_[k] = -(1 << 20);
      column_[k] = 0;
      source_[k] = result[k] = 0;
    }
    find_ends(source_, p.step_horizontal, source_ends_);
    find_ends(result, p.place_horizontal, result_ends_);
  }

  /// Reads the source for a tap.
  void read_source(const blocked_product<T, 2>& p, const blocked_tap& tap) {
    const auto height = unsigned(p.height), width = unsigned(p.width);
    for (std::size_t k = 0; k < std::size_t(Most); ++k) {
      inside_[k] =
          unsigned(row_[k] + tap.row) < height && unsigned(column_[k] + tap.column) < width;
    }
    step = p.step_horizontal;
    moved_ = std::int64_t{tap.row} * p.width + tap.column;
    find_runs(source_, source_ends_);
  }
  /// Reads the image of results.
  void read_results(const blocked_product<T, 2>& p) {
    for (int k = 0; k < Most; ++k) inside_[std::size_t(k)] = k < count;
    step = p.place_horizontal;
    moved_ = 0;
    find_runs(result, result_ends_);
  }
  /// Lists the pixels that are outside.
  void list_outside() {
    listed_count = 0;
    for (int k = 0; k < Most; ++k) {
      listed[std::size_t(listed_count)] = k;
      listed_count += !is_inside(k);
    }
  }
  /// Lists the pairs of neighbours, of `pairs`, that are not both inside and of one run.
  void list_mixed(int pairs) {
    listed_count = 0;
    for (int k = 0; k < pairs; ++k) {
      const auto first = std::size_t(2 * k);
      const bool joined = (*of_)[first] + step == (*of_)[first + 1];
      listed[std::size_t(listed_count)] = k;
      listed_count += !(inside_[first] && inside_[first + 1] && joined);
    }
  }
  /// Where pixel k lies in the image, in block 0; -1: outside.
  std::int64_t at(int k) const { return is_inside(k) ? (*of_)[std::size_t(k)] + moved_ : -1; }

 private:
  using places = std::array<std::int64_t, std::size_t(Most)>;
  /// Where runs end, whatever is outside.
  struct run_ends {
    int count = 0;
    std::array<std::int32_t, std::size_t(Most)> at;
  };

  void find_ends(const places& of, std::int64_t apart, run_ends& ends) const {
    ends.count = 0;
    for (int k = 1; k <= count; ++k) {
      if (k == count || of[std::size_t(k)] != of[std::size_t(k - 1)] + apart)
        ends.at[std::size_t(ends.count++)] = k;
    }
  }
  bool is_inside(int k) const { return inside_[std::size_t(k)]; }
  void find_runs(const places& of, const run_ends& ends) {
    of_ = &of;
    run_count = 0;
    for (int e = 0, first = 0; e < ends.count; first = ends.at[std::size_t(e++)]) {
      run r{first, ends.at[std::size_t(e)], 0};
      while (r.first < r.last && !is_inside(r.first)) ++r.first;
      while (r.first < r.last && !is_inside(r.last - 1)) --r.last;
      if (r.first == r.last) continue;
      r.at = of[std::size_t(r.first)] + moved_;
      runs[std::size_t(run_count++)] = r;
    }
  }

  places source_;                                             // of block 0, before the tap
  std::array<std::int32_t, std::size_t(Most)> row_, column_;  // there
  std::array<bool, std::size_t(Most)> inside_;
  run_ends source_ends_, result_ends_;
  const places* of_ = &source_;  // what was read last, and by how much it is moved
  std::int64_t moved_ = 0;
};

}  // namespace cella::cpu::detail
