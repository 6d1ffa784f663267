// What a step writes, and what it costs.
#pragma once

#include <cella/ops/cost.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/plan/places.hpp>

namespace cella {

/// The outputs of steps. `Planning` is the back end's: see planner.hpp.
template <class Planning>
class step_outputs {
 public:
  constexpr explicit step_outputs(value_places<Planning>& where)
      : p(where), c(where.c), g(where.g) {}

  /// Why a step cannot write all that it must; empty if it can.
  constexpr const text& fault() const { return fault_; }

  /// Members that somebody outside the group reads are written to memory.
  constexpr void place(const fusion_group& s, plan_step& t) {
    auto put = [&](node_id n) {
      if (s.kind == step_kind::rows && only_summed(s, t, n)) {
        const auto e = t.template as<rows_step>();
        t.outputs[std::size_t(t.output_count++)] = {
            .value = n, .at = p.sum_rows(n, e), .summed = true};
        return;
      }
      if (t.output_count == int(t.outputs.size())) {
        fault_ = text() << "a fused group writes more than " << t.outputs.size() << " values";
        return;
      }
      const layout a = step_traits(s.kind).alone ? layout::plain : c.value_format(s);
      buffer_ref at =
          a == layout::plain || p.replaced_input(n) >= 0 ? p.destination(n) : buffer_ref{};
      if (at == buffer_ref{}) at = p.arena.fresh(p.bytes_of(n, a));
      p.remember(n, a, at);
      t.outputs[std::size_t(t.output_count++)] = {.value = n, .at = at, .form = a};
    };
    if (Planning::outputs(p, s, t)) return;
    if (step_traits(s.kind).alone || s.kind == step_kind::control) {
      const node& x = c.at(s.anchor);
      if (!x.result_count) {
        put(s.value());
        if (s.kind == step_kind::control) link_result(t, t.outputs[0].at);
        return;
      }
      for (int k = 0; k < x.result_count; ++k) {
        const buffer_ref at = p.place_of_result(s.anchor, k);
        if (s.kind == step_kind::control)
          link_result(t, at);
        else
          t.outputs[std::size_t(t.output_count++)] = {.value = c.get_of(s.anchor, k), .at = at};
      }
      return;
    }
    if (s.pattern >= 0) {
      const attention_pattern& a = c.patterns[std::size_t(s.pattern)];
      if (s.kind == step_kind::attention) return put(a.result.value);
      if (a.joined) return put(a.last);
      for (const heads_walk* w : {&a.query_gradient, &a.key_gradient, &a.value_gradient})
        put(w->value);
      return;
    }
    if (s.kind == step_kind::cross_entropy) {
      const buffer_ref loss = p.arena.fresh(p.bytes_of(s.operands[3], layout::plain));
      p.remember(s.operands[3], layout::plain, loss);
      t.outputs[0] = {.value = s.operands[3], .at = loss};
      t.output_count = 1;
      if (s.operands[2] >= 0) {
        const buffer_ref at = p.arena.fresh(p.bytes_of(s.operands[2], s.arrangement));
        p.remember(s.operands[2], s.arrangement, at);
        t.outputs[1] = {.value = s.operands[2], .at = at, .form = s.arrangement};
        t.output_count = 2;
      }
      return;
    }
    for (node_id m : s.members) {
      if (m == s.pool_argmax || c.is_alias(m)) continue;
      if (m == s.anchor && s.accumulated >= 0 && m != s.accumulated) continue;
      const node& x = c.at(m);
      if (x.result_count || x.type.element == dtype::boolean) continue;
      if (x.op == &get_info_of && m != s.accumulated) continue;
      if (c.prologue(s, m)) continue;
      if (s.kind != step_kind::rows && m != s.value() && !c.in_registers(m)) continue;
      bool placed = false;
      for (int k = 0; k < t.output_count; ++k) placed |= t.outputs[std::size_t(k)].value == m;
      if (!placed && read_outside(c, s, m)) put(m);
    }
  }

  /// Floating-point operations and bytes moved, for profiles and tables.
  constexpr void count(const fusion_group& s, plan_step& t) const {
    const node& x = c.at(s.anchor);
    if (s.pattern >= 0) {
      const attention_pattern& a = c.patterns[std::size_t(s.pattern)];
      const std::int64_t pairs = a.causal ? std::int64_t{a.queries} * (a.queries + 1) / 2
                                          : std::int64_t{a.queries} * a.keys;
      const std::int64_t widths = s.kind == step_kind::attention ? a.width + a.value_width
                                                                 : 3 * a.width + 2 * a.value_width;
      t.flops = 2 * a.batch * a.heads * pairs * widths;
    } else if (x.op->kind == op_kind::bilinear) {
      t.flops = operations_of_node(g, s.anchor);
    } else if (s.kind == step_kind::control) {
      t.flops = operations_of_regions(g, x);
    } else {
      const node_id each = s.kind == step_kind::rows       ? g.operand(s.anchor, 0)
                           : s.kind == step_kind::put_rows ? g.operand(s.anchor, 2)
                                                           : s.anchor;
      t.flops = g.type(each).size() * std::int64_t(s.members.size());
    }
    for (node_id o : s.operands) {
      // What a sum is of is among its reads, or computed on the way.
      if (o >= 0 && s.kind != step_kind::reduce) t.bytes += g.type(o).bytes();
    }
    if (step_traits(s.kind).alone) t.bytes += bytes_of_node(g, s.anchor).read;
    for (int k = 0; k < t.read_count; ++k) {
      const operand_read& r = t.reads[std::size_t(k)];
      const bool broadcast = c.is_broadcast(r.value);
      const node_id from =
          broadcast || r.factor >= 0 ? g.operand(r.value, broadcast ? 0 : r.factor) : r.value;
      if (r.factor == 0) t.flops += 2 * r.depth * g.type(r.value).size();
      const auto* const sums = p.sums_of_rows(from);
      if (r.how != access::drawn) t.bytes += sums ? sums->bytes : g.type(from).bytes();
    }
    for (int k = 0; k < t.output_count; ++k) {
      const node_id n = t.outputs[std::size_t(k)].value;
      if (n < 0) continue;
      t.bytes += t.outputs[std::size_t(k)].summed ? p.sums_of_rows(n)->bytes : g.type(n).bytes();
    }
  }

 private:
  /// Whether all that others want of `m`, a value of a row-wise group, are sums over the rows.
  constexpr bool only_summed(const fusion_group& s, const plan_step& t, node_id m) const {
    const auto e = t.template as<rows_step>();
    if (c.is_output(m) || g.type(m).size() != e.rows * e.width) return false;
    const unsigned rows = (1u << e.kept) - 1, all = (1u << g.type(m).rank()) - 1;
    for (node_id u : c.users(m)) {
      if (c.member(s, u)) continue;
      const int by = c.owner[std::size_t(u)];
      if (by < 0 || !is<sum_op>(c.at(u))) return false;
      const fusion_group& sum = c.groups[std::size_t(by)];
      const unsigned axes = c.at(u).attributes.template as<axes_options>().axes;
      if (sum.kind != step_kind::reduce || sum.anchor != u || sum.arrangement != layout::plain ||
          (axes != rows && axes != all))
        return false;
    }
    return true;
  }
  constexpr void link_result(plan_step& t, buffer_ref at) {
    p.plan.links.push_back(at);
    ++t.link_count;
  }

  value_places<Planning>& p;
  const fusion_groups& c;
  const graph& g;
  text fault_;
};

}  // namespace cella
