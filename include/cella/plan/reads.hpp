// What a fused step reads from memory, and along which loops.
#pragma once

#include <cella/ops/broadcast.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/plan/loop_nests.hpp>
#include <cella/plan/places.hpp>

namespace cella {

/// The reads of steps. `Planning` is the back end's: see planner.hpp.
template <class Planning>
class step_reads {
 public:
  constexpr explicit step_reads(value_places<Planning>& where) : p(where), c(where.c), g(where.g) {}

  /// Why a step cannot read all that it must; empty if it can.
  constexpr const text& fault() const { return fault_; }

  /// What the group's expressions read from memory, each value once.
  constexpr void find(const fusion_group& s, plan_step& t) {
    const bool loops = s.kind == step_kind::elementwise || s.kind == step_kind::reduce;
    if (loops) loop_domain(s, t);
    if (s.kind == step_kind::reduce && !c.member(s, s.operands[0])) read(s, t, s.operands[0], true);
    if (s.kind == step_kind::rows) return row_leaves(s, t);
    if (!step_traits(s.kind).fuses) return;
    for (node_id m : s.members) {
      if (m == s.anchor && s.kind != step_kind::elementwise) continue;
      if (!c.in_registers(m) || c.is_alias(m)) continue;
      const bool prologue = c.prologue(s, m);
      for (node_id o : g.operands(m)) {
        if (!c.member(s, o) && !c.is_constant(o))
          read(s, t, o, s.kind == step_kind::elementwise || prologue);
      }
    }
    if (loops) {
      parts(s, t);
      collapse_loops(t);
    }
  }

 private:
  /// rows: a row's numbers, and what is read for each element or once for the row.
  constexpr void row_leaves(const fusion_group& s, plan_step& t) {
    const shape domain = g.type(g.operand(s.anchor, 0)).shape;
    const unsigned folded = c.at(s.anchor).attributes.template as<axes_options>().axes;
    int kept = 0;
    while (!(folded >> kept & 1)) ++kept;
    const std::int64_t rows = domain.size(0, kept), width = domain.size(kept, domain.rank);
    t.shape = rows_step{rows, width, kept, rows_of_unit(rows, width)};
    for (node_id m : s.members) {
      if (g.type(m).shape != domain) t.stats[std::size_t(t.stat_count++)] = m;
      for (node_id o : g.operands(m)) {
        node_id from = o;
        while (c.is_alias(from) || c.is_broadcast(from)) from = g.operand(from, 0);
        if (!c.member(s, from) && !c.is_constant(o)) read(s, t, o, false);
      }
    }
  }
  /// Rows that are one unit of work, so that each unit has enough to do. Sums over the rows of a
  /// unit are taken one after the other, so that there are few of them.
  static constexpr std::int64_t rows_of_unit(std::int64_t rows, std::int64_t width) {
    constexpr std::int64_t most = 64;
    return std::min(most, std::max<std::int64_t>({1, 8192 / width, (rows + 63) / 64}));
  }
  /// How a row-wise group reads `n`, which is (repeated from) `from`.
  constexpr access row_access(const plan_step& t, node_id n, node_id from) const {
    const auto e = t.template as<rows_step>();
    if (n == from) return g.type(n).size() == e.rows ? access::row : access::same;
    if (g.type(from).size() == 1) return access::scalar;
    const auto [first, last] = varying_axes(g, n);
    if (last <= e.kept && g.type(from).size() == e.rows) return access::row;
    return first >= e.kept && g.type(from).size() == e.width ? access::column : access::stretch;
  }

  /// Outputs that are written to their place in a concatenation.
  constexpr void parts(const fusion_group& s, plan_step& t) {
    for (node_id m : s.members) {
      for (node_id u : c.users(m)) {
        if (!c.is_assembled(u) || c.placed_in(m) >= 0) continue;
        const auto axis = std::size_t(c.at(u).attributes.template as<concat_op::options>().axis);
        const auto whole = row_major_strides(g.type(u).shape);
        step_output o{.value = m, .at = p.assembled(u), .part = true};
        for (node_id before : g.operands(u)) {
          if (before == m) break;
          o.first += g.type(before)[int(axis)] * whole[axis];
        }
        for (int d = 0; d < t.loops; ++d) o.strides[std::size_t(d)] = whole[std::size_t(d)];
        t.outputs[std::size_t(t.output_count++)] = o;
      }
    }
  }
  constexpr void loop_domain(const fusion_group& s, plan_step& t) const {
    const node_id n = s.kind == step_kind::reduce ? s.operands[0] : s.anchor;
    shape d = g.type(n).shape;
    const auto* const sums = p.sums_of_rows(n);
    if (sums) d = {int(sums->units), int(sums->width)};
    if (s.arrangement != layout::plain)
      d = Planning::vectors(d, s.arrangement, c.machine.lanes(c.element));
    const bool flat = d.rank == 0 || c.has_many_axes(n);
    t.loops = flat ? 1 : d.rank;
    t.loop[0] = d.size();
    for (int i = 0; !flat && i < t.loops; ++i) t.loop[std::size_t(i)] = d[i];
    if (s.kind == step_kind::reduce) {
      t.folded = c.at(s.anchor).attributes.template as<axes_options>().axes;
      if (sums) t.folded = t.folded == (1u << g.type(n).rank()) - 1 ? 3 : 1;
      t.shape = reduce_step{g.type(n)[0], int(t.folded & 1) & (s.arrangement == layout::lanes)};
    }
  }

  constexpr void read(const fusion_group& s, plan_step& t, node_id n, bool in_loops) {
    if (t.find_read(n) >= 0) return;
    if (c.is_short_product(n)) return read_product(t, n);
    operand_read l{.value = n};
    const bool broadcast = c.is_broadcast(n);
    const bool part = in_loops && c.is_strided_view(n);
    const node_id from = broadcast || part ? g.operand(n, 0) : n;
    const tensor_type t_from = g.type(from);
    if (const auto* const sums = p.sums_of_rows(n); sums && in_loops) {
      l.at = sums->at;
      l.how = access::moving;
      l.strides[0] = sums->width;
      l.strides[1] = 1;
    } else if (c.is_draw(n)) {
      l.how = access::drawn;
      l.at = p.stream_of(n);
      const auto own = row_major_strides(g.type(n).shape);
      for (std::size_t d = 0; d < std::size_t(g.type(n).rank()); ++d) l.strides[d] = own[d];
    } else if (s.kind == step_kind::rows) {
      l.at = p.locate(from, layout::plain);
      l.how = row_access(t, n, from);
      if (l.how == access::stretch) {
        auto e = t.template as<rows_step>();
        const shape& whole = g.type(n).shape;
        e.stretch = whole.size(varying_axes(g, n).second, whole.rank);
        e.numbers = t_from.size();
        t.shape = e;
      }
    } else if (in_loops && s.arrangement != layout::plain) {
      Planning::read_in_loops(p, s.arrangement, t, l);
    } else if (in_loops && c.has_many_axes(n)) {
      const bool single = broadcast && t_from.size() == 1;
      l.at = p.locate(single ? from : n, layout::plain);
      l.strides[0] = !single;
      l.how = access::moving;
    } else if (in_loops) {
      l.at = p.locate(from, layout::plain);
      const shape& stored = t_from.shape;
      const auto own = row_major_strides(stored);
      if (broadcast) {
        const auto o = c.at(n).attributes.template as<broadcast_op::options>();
        for (int d = 0; d < stored.rank; ++d)
          l.strides[std::size_t(o.axes[std::size_t(d)])] = own[std::size_t(d)];
      } else if (part) {
        const auto o = c.at(n).attributes.template as<slice_op::options>();
        for (std::size_t d = 0; d < std::size_t(stored.rank); ++d) {
          l.first += o.start[d] * own[d];
          l.strides[d] = own[d] * o.step[d];
        }
      } else {
        for (int d = 0; d < stored.rank; ++d) l.strides[std::size_t(d)] = own[std::size_t(d)];
      }
      l.how = access::moving;  // or fixed: known once the loops are collapsed
    } else if (broadcast) {
      l.at = p.locate(from, layout::plain);
      const auto axis = c.at(n).attributes.template as<broadcast_op::options>().axes[0];
      l.how = t_from.size() == 1   ? access::scalar
              : axis == s.row_axis ? access::row
                                   : access::column;
    } else {
      l.at = p.locate(from, c.value_format(s));
      l.how = access::same;
    }
    add_read(t, l);
  }
  constexpr void add_read(plan_step& t, const operand_read& l) {
    if (t.read_count == int(t.reads.size())) {
      fault_ = text() << "a fused group reads more than " << t.reads.size() << " values";
      return;
    }
    t.reads[std::size_t(t.read_count++)] = l;
  }
  /// Both factors of a product that the loops sum up.
  constexpr void read_product(plan_step& t, node_id n) {
    const walk_of_product w(g, n);
    for (int k = 0; k < 2; ++k) {
      operand_read l{.value = n, .how = access::moving};
      l.at = p.locate(g.operand(n, k), layout::plain);
      for (std::size_t d = 0; d < max_loops; ++d) l.strides[d] = w.of_result[std::size_t(k)][d];
      l.factor = k;
      l.depth = int(w.depth);
      l.along = w.along[std::size_t(k)];
      add_read(t, l);
    }
  }

  value_places<Planning>& p;
  const fusion_groups& c;
  const graph& g;
  text fault_;
};

}  // namespace cella
