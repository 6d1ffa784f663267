// Passes by name, and their sequence.
#pragma once

#include <cella/graph/check.hpp>
#include <cella/passes/loops/loop_products.hpp>
#include <cella/passes/order/casts_apart.hpp>
#include <cella/passes/order/masks_apart.hpp>
#include <cella/passes/order/scalars_first.hpp>
#include <cella/passes/simplify/cse.hpp>
#include <cella/passes/simplify/dce.hpp>
#include <cella/passes/simplify/fold.hpp>
#include <cella/passes/simplify/narrow.hpp>
#include <cella/passes/simplify/prune.hpp>
#include <cella/passes/simplify/row_updates.hpp>
#include <cella/passes/simplify/scale_filters.hpp>
#include <cella/passes/simplify/sink_monotone.hpp>
#include <cella/passes/simplify/widen.hpp>

namespace cella {

/// A function from graph to graph. It computes the same outputs from the same inputs.
struct pass {
  std::string_view name;
  graph (*run)(graph);
};

/// What every traced graph goes through before it is lowered.
inline constexpr std::array standard_passes{pass{"prune", prune},
                                            pass{"sink_monotone", sink_monotone},
                                            pass{"fold", fold},
                                            pass{"narrow", narrow},
                                            pass{"widen", widen},
                                            pass{"scale_filters", scale_filters},
                                            pass{"row_updates", row_updates},
                                            pass{"cse", cse},
                                            pass{"move_loop_products", move_loop_products},
                                            pass{"scalars_first", scalars_first},
                                            pass{"masks_apart", masks_apart},
                                            pass{"casts_apart", casts_apart},
                                            pass{"dce", dce}};

/// The graph after the passes, one after the other.
constexpr graph optimize(graph g, span<const pass> passes = standard_passes) {
  for (const pass& p : passes) g = p.run(std::move(g));
  return g;
}

/// The same with the graph checked before and after every pass; the fault names the pass that broke
/// it. For tests and debugging: a check costs as much as a pass.
constexpr traced_graph optimize_checked(graph g, span<const pass> passes = standard_passes) {
  traced_graph t{std::move(g), {}};
  t.fault = check(t.graph);
  for (const pass& p : passes) {
    if (!t.fault.empty()) return t;
    t.graph = p.run(std::move(t.graph));
    const text found = check(t.graph);
    if (!found.empty()) t.fault = text() << "after " << p.name << ": " << found;
  }
  return t;
}

}  // namespace cella
