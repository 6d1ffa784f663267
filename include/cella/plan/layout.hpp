// The formats of tensors in memory.
#pragma once

#include <cstdint>
#include <string_view>

namespace cella {

/// How a tensor lies in memory. `lanes`: [ceil(N/L)][features...][L], the batch in the SIMD lanes.
/// `blocked`: an image as [N][C/L][H][W][L], L channels side by side.
enum class layout : std::uint8_t { plain, lanes, blocked };
constexpr std::string_view name(layout a) {
  return a == layout::plain ? "plain" : a == layout::lanes ? "lanes" : "blocks";
}

}  // namespace cella
