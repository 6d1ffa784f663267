// Images at the places of a grid.
#pragma once

#include <cella/interop/onnx/node.hpp>
#include <cella/ops/sampling.hpp>

namespace cella::interop {

inline list<var> grid_sample_rule(onnx_node& n) {
  const std::string mode = n.one_of("mode", {"linear", "bilinear", "nearest", "cubic", "bicubic"});
  const std::string padding = n.one_of("padding_mode", {"zeros", "border", "reflection"});
  sample_form f;
  f.mode = mode == "nearest"         ? sample_mode::nearest
           : mode.ends_with("cubic") ? sample_mode::cubic
                                     : sample_mode::linear;
  f.padding = padding == "zeros"    ? sample_padding::zeros
              : padding == "border" ? sample_padding::border
                                    : sample_padding::reflection;
  f.align_corners = n.integer("align_corners", 0) != 0;
  const var x = n.in(0, 4, 5);
  return {grid_sample(x, n.in(1, x.rank(), x.rank()), f)};
}
inline list<var> affine_grid_rule(onnx_node& n) {
  std::vector<int> extents;
  const auto size = n.integers(1);
  for (std::size_t d = 2; d < size.size(); ++d) {
    extents.push_back(int(n.between(1, size[d], 1 << 20, "extent")));
  }
  if (extents.empty() || extents.size() > 3)
    n.not_supported("a grid over other than one to three axes");
  double places = 1;
  for (int e : extents) n.limit(places *= e);
  return {affine_grid(n.in(0, 3, 3), extents, n.integer("align_corners", 0) != 0)};
}

inline constexpr named_onnx_rule grid_sampling_rules[] = {
    {"AffineGrid", affine_grid_rule},
    {"GridSample", grid_sample_rule},
};

}  // namespace cella::interop
