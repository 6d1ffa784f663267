// The gradient of a dense layer's weights by whole rows, for lines as data: tiles are short pieces
// of far rows, while lines that are interpreted want long stretches.
#pragma once

#include <cella/backend/cpu/lanes/dense.hpp>

namespace cella::cpu {

/// Groups of rows as high as a tile: the units of work of `lanes_dense_weight_gradient_rows`.
constexpr int lanes_dense_row_groups(const lanes_dense_weight_extents& e) {
  return ceil_divide(e.out_features, detail::dense_rows);
}
/// Elements of a group, the last of which may have fewer rows, and its first in dw [O][I].
constexpr std::int64_t lanes_dense_row_group_size(const lanes_dense_weight_extents& e, int group) {
  const int rows = std::min(detail::dense_rows, e.out_features - group * detail::dense_rows);
  return std::int64_t{rows} * e.in_features;
}
constexpr std::int64_t lanes_dense_row_group_first(const lanes_dense_weight_extents& e, int group) {
  return std::int64_t{group} * detail::dense_rows * e.in_features;
}
/// Elements of double precision that a group of rows needs besides: none for short batches.
template <class T>
constexpr std::int64_t lanes_dense_row_group_sums(const lanes_dense_weight_extents& e) {
  return e.blocks > detail::blocks_at_once<T> ? lanes_dense_row_group_size(e, 0) : 0;
}

/// dy and xt as for `lanes_dense_weight_gradient`; fills `to` with the rows of a group. `sums`: so
/// many as `lanes_dense_row_group_sums` says.
template <class T>
void lanes_dense_weight_gradient_rows(int group, const lanes_dense_weight_extents& e, const T* dy,
                                      const T* xt, T* to, double* sums) {
  constexpr tile_set tiles = all_tiles & ~detail::long_sums;
  constexpr int L = lanes<T>, at_once = detail::blocks_at_once<T>;
  const int units = lanes_dense_weight_gradient_units<T>(e) / lanes_dense_row_groups(e);
  const std::int64_t count = lanes_dense_row_group_size(e, group);
  const std::int64_t first = lanes_dense_row_group_first(e, group);
  const std::int64_t width = std::int64_t{ceil_divide(e.in_features, L)} * L;
  for (int from = 0; from < e.blocks; from += at_once) {
    lanes_dense_weight_extents part = e;
    part.blocks = std::min(at_once, e.blocks - from);
    lanes_dense_weight_gradient<tiles>(
        {group * units, (group + 1) * units}, part, dy + std::int64_t{from} * e.out_features * L,
        xt + std::int64_t{from} * L * width, [to, first](vec<T> value, std::int64_t at, int n) {
          store_plain<T>{to}(value, at - first, n);
        });
    if (e.blocks <= at_once) return;
    for (std::int64_t i = 0; i < count; ++i) sums[i] = (from == 0 ? 0 : sums[i]) + double{to[i]};
  }
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(sums[i]);
}

}  // namespace cella::cpu
