// Removal of dead code.
#pragma once

#include <cella/graph/freeze.hpp>

namespace cella {

/// The part of the graph that its outputs need. Inputs stay, so that the signature of the graph and
/// of its regions is kept. Afterwards order is id, region by region, inputs in front.
constexpr graph dce(graph g) { return live_part(g); }

}  // namespace cella
