// What plans are made for: the few facts of a processor that general planning asks about.
#pragma once

#include <cella/graph/graph.hpp>
#include <cella/plan/step_kind.hpp>
#include <cstdint>
#include <initializer_list>

namespace cella {

/// A set of kinds of steps.
struct step_kinds {
  std::uint64_t bits{};

  constexpr step_kinds() = default;
  constexpr step_kinds(std::initializer_list<step_kind> all) {
    for (step_kind k : all) bits |= std::uint64_t{1} << int(k);
  }
  constexpr bool has(step_kind k) const { return bits >> int(k) & 1; }
};

struct plan_target {
  int vector_bytes = 16;
  int vector_registers = 16;
  std::int64_t nearest_cache = 32 << 10;  ///< bytes
  /// The most values that a fused step reads and writes.
  int most_reads = 14, most_writes = 8;
  /// What runs as a step of plain tensors, besides `generic`, `copy` and `control`. The rest is
  /// left to the operations' own computation.
  step_kinds kernels;
  /// The kernel that computes node `n` alone in a program of element type `element`, be it among
  /// `kernels` or not.
  step_kind (*kernel_alone)(const graph& g, node_id n, dtype element) = only_generic;

  static constexpr step_kind only_generic(const graph& g, node_id n, dtype) {
    return g.nodes[std::size_t(n)].op->kind == op_kind::control ? step_kind::control
                                                                : step_kind::generic;
  }

  /// Elements of a vector.
  constexpr int lanes(dtype t) const { return vector_bytes / int(size_of(t)); }
  /// Whether programs may have this element type: others are only stored and moved.
  constexpr bool computes(dtype t) const { return t == dtype::f32 || t == dtype::f64; }
};

}  // namespace cella
