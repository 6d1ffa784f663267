// From groups to steps: operands, extents, reads and outputs of each kernel.
#pragma once

#include <cella/passes/arithmetic.hpp>
#include <cella/plan/loop_nests.hpp>
#include <cella/plan/operands.hpp>
#include <tuple>

namespace cella {

class planner : public plan_operands {
 public:
  constexpr planner(const graph& source, plan_options options) : plan_operands(source, options) {
    for (int i : order_) {
      if (carrier_[std::size_t(i)] < 0) lower(i);
    }
    finish();
  }

 private:
  constexpr void lower(int index, bool carried = false) {
    const int side = side_[std::size_t(index)];
    if (side >= 0) lower(side, true);
    const fusion_group& s = cut_.groups[std::size_t(index)];
    plan_step t{.kind = s.kind,
                .arrangement = s.arrangement,
                .anchor = s.anchor,
                .accumulated = s.accumulated};
    operands(s, t);
    leaves(s, t);
    t.carried = carried;
    if (side >= 0) t.side = int(plan_.steps.size()) - 1;
    outputs(s, t);
    count(s, t);
    emit(t);
  }

  /// What the group's expressions read from memory, each value once.
  constexpr void leaves(const fusion_group& s, plan_step& t) {
    const bool loops = s.kind == step_kind::elementwise || s.kind == step_kind::reduce;
    if (loops) loop_domain(s, t);
    if (s.kind == step_kind::reduce && !cut_.member(s, s.operands[0]))
      read(s, t, s.operands[0], true);
    if (s.kind == step_kind::rows) return row_leaves(s, t);
    if (s.kind == step_kind::cross_entropy || runs_alone(s.kind) || s.kind == step_kind::control ||
        s.pattern >= 0 || s.kind == step_kind::max_pool)
      return;
    for (node_id m : s.members) {
      if (m == s.anchor && s.kind != step_kind::elementwise) continue;
      if (!cut_.in_registers(m) || cut_.is_alias(m)) continue;
      const bool prologue = cut_.prologue(s, m);
      for (node_id o : g.operands(m)) {
        if (!cut_.member(s, o) && !cut_.is_constant(o))
          read(s, t, o, s.kind == step_kind::elementwise || prologue);
      }
    }
    if (loops) {
      parts(s, t);
      collapse_loops(t);
    }
  }

  /// rows: a row's numbers, and what is read for each element or once for the row.
  constexpr void row_leaves(const fusion_group& s, plan_step& t) {
    const shape domain = g.type(g.operand(s.anchor, 0)).shape;
    const unsigned folded = g.nodes[std::size_t(s.anchor)].attributes.as<axes_options>().axes;
    int kept = 0;
    while (!(folded >> kept & 1)) ++kept;
    const std::int64_t rows = domain.size(0, kept), width = domain.size(kept, domain.rank);
    t.shape = rows_step{rows, width, kept, rows_of_unit(rows, width)};
    for (node_id m : s.members) {
      if (g.type(m).shape != domain) t.stats[std::size_t(t.stat_count++)] = m;
      for (node_id o : g.operands(m)) {
        node_id from = o;
        while (cut_.is_alias(from) || cut_.is_broadcast(from)) from = g.operand(from, 0);
        if (!cut_.member(s, from) && !cut_.is_constant(o)) read(s, t, o, false);
      }
    }
  }
  /// Rows that are one unit of work, so that each unit has enough to do, and sums over rows have
  /// few terms.
  static constexpr std::int64_t rows_of_unit(std::int64_t rows, std::int64_t width) {
    return std::max<std::int64_t>({1, 8192 / width, (rows + 63) / 64});
  }
  /// Whether all that others want of `m`, a value of a row-wise group, are sums over the rows.
  constexpr bool only_summed(const fusion_group& s, const plan_step& t, node_id m) const {
    const auto e = t.as<rows_step>();
    if (cut_.is_output(m) || g.type(m).size() != e.rows * e.width) return false;
    const unsigned rows = (1u << e.kept) - 1, all = (1u << g.type(m).rank()) - 1;
    for (node_id u : cut_.users(m)) {
      if (cut_.member(s, u)) continue;
      const int by = cut_.owner[std::size_t(u)];
      if (by < 0 || !is<sum_op>(g.nodes[std::size_t(u)])) return false;
      const fusion_group& sum = cut_.groups[std::size_t(by)];
      const unsigned axes = g.nodes[std::size_t(u)].attributes.as<axes_options>().axes;
      if (sum.kind != step_kind::reduce || sum.anchor != u || sum.arrangement != layout::plain ||
          (axes != rows && axes != all))
        return false;
    }
    return true;
  }
  /// Where the sums of some rows of `n` lie, if it is not written as it is; null otherwise.
  constexpr const row_sums* sums_of_rows(node_id n) const {
    for (const row_sums& h : sums_) {
      if (h.value == n) return &h;
    }
    return nullptr;
  }
  /// How a row-wise group reads `n`, which is (repeated from) `from`.
  constexpr access row_access(const plan_step& t, node_id n, node_id from) const {
    const auto e = t.as<rows_step>();
    if (n == from) return g.type(n).size() == e.rows ? access::row : access::same;
    if (g.type(from).size() == 1) return access::scalar;
    const auto o = g.nodes[std::size_t(n)].attributes.as<broadcast_op::options>();
    for (int d = 0; d < g.type(from).rank(); ++d) {
      if (g.type(from)[d] > 1)
        return o.axes[std::size_t(d)] < e.kept ? access::row : access::column;
    }
    return access::scalar;
  }

  /// Outputs that are written to their place in a concatenation.
  constexpr void parts(const fusion_group& s, plan_step& t) {
    for (node_id m : s.members) {
      for (node_id c : cut_.users(m)) {
        if (!cut_.is_assembled(c) || cut_.placed_in(m) >= 0) continue;
        const auto axis =
            std::size_t(g.nodes[std::size_t(c)].attributes.as<concat_op::options>().axis);
        const auto whole = row_major_strides(g.type(c).shape);
        step_output o{.value = m, .at = assembled(c), .part = true};
        for (node_id before : g.operands(c)) {
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
    const row_sums* const sums = sums_of_rows(n);
    if (sums) d = {int(sums->units), int(sums->width)};
    if (s.arrangement == layout::lanes) d[0] = (d[0] + options_.lanes - 1) / options_.lanes;
    if (s.arrangement == layout::blocked) d[1] /= options_.lanes;
    t.loops = d.rank ? d.rank : 1;
    if (t.loops > max_loops) {
      // Leading axes are one loop as long as no operand is broadcast along them; checked in `read`.
      t.loops = max_loops;
    }
    for (int i = 0; i < t.loops; ++i) t.loop[std::size_t(i)] = d.rank ? d[i] : 1;
    if (s.kind == step_kind::reduce) {
      t.folded = g.nodes[std::size_t(s.anchor)].attributes.as<axes_options>().axes;
      if (sums) t.folded = t.folded == (1u << g.type(n).rank()) - 1 ? 3 : 1;
      t.shape = reduce_step{g.type(n)[0], int(t.folded & 1) & (s.arrangement == layout::lanes)};
    }
  }

  constexpr void read(const fusion_group& s, plan_step& t, node_id n, bool in_loops) {
    if (t.find_read(n) >= 0) return;
    if (cut_.is_short_product(n)) return read_product(t, n);
    operand_read l{.value = n};
    const bool lanes = s.arrangement == layout::lanes;
    const bool broadcast = cut_.is_broadcast(n);
    const bool part = in_loops && cut_.is_strided_view(n);
    const node_id from = broadcast || part ? g.operand(n, 0) : n;
    const tensor_type t_from = g.type(from);
    if (const row_sums* const sums = sums_of_rows(n); sums && in_loops) {
      l.at = sums->at;
      l.how = access::moving;
      l.strides[0] = sums->width;
      l.strides[1] = 1;
    } else if (cut_.is_draw(n)) {
      l.how = access::drawn;
      l.at = stream_of(n);
      const auto own = row_major_strides(g.type(n).shape);
      for (std::size_t d = 0; d < std::size_t(g.type(n).rank()); ++d) l.strides[d] = own[d];
    } else if (s.kind == step_kind::rows) {
      l.at = locate(from, layout::plain);
      l.how = row_access(t, n, from);
    } else if (in_loops && s.arrangement == layout::blocked) {
      read_blocks(l, n, from);
    } else if (in_loops) {
      const bool batched = cut_.batched[std::size_t(from)] != 0;
      l.at = locate(from, lanes && batched ? layout::lanes : layout::plain);
      shape stored = t_from.shape;
      if (lanes && batched) stored[0] = int(t.loop[0]);
      const auto own = row_major_strides(stored);
      if (broadcast) {
        const auto o = g.nodes[std::size_t(n)].attributes.as<broadcast_op::options>();
        for (int d = 0; d < stored.rank; ++d)
          l.strides[std::size_t(o.axes[std::size_t(d)])] = own[std::size_t(d)];
      } else if (part) {
        const auto o = g.nodes[std::size_t(n)].attributes.as<slice_op::options>();
        for (std::size_t d = 0; d < std::size_t(stored.rank); ++d) {
          l.first += o.start[d] * own[d];
          l.strides[d] = own[d] * o.step[d];
        }
      } else {
        for (int d = 0; d < stored.rank; ++d) l.strides[std::size_t(d)] = own[std::size_t(d)];
      }
      l.how = access::moving;  // or fixed: known once the loops are collapsed
      if (lanes && !batched) l.how = access::fixed;
    } else if (broadcast) {
      l.at = locate(from, layout::plain);
      const auto axis = g.nodes[std::size_t(n)].attributes.as<broadcast_op::options>().axes[0];
      l.how = t_from.size() == 1   ? access::scalar
              : axis == s.row_axis ? access::row
                                   : access::column;
    } else {
      const node_id value = s.accumulated >= 0 ? s.accumulated : s.anchor;
      const bool blocks = s.arrangement == layout::blocked && cut_.blocked[std::size_t(value)];
      l.at = locate(from, blocks                                      ? layout::blocked
                          : lanes && cut_.batched[std::size_t(value)] ? layout::lanes
                                                                      : layout::plain);
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
      l.at = locate(g.operand(n, k), layout::plain);
      for (std::size_t d = 0; d < max_loops; ++d) l.strides[d] = w.of_result[std::size_t(k)][d];
      l.factor = k;
      l.depth = int(w.depth);
      l.along = w.along[std::size_t(k)];
      add_read(t, l);
    }
  }

  /// In loops over samples, blocks, rows and columns: vectors of channels, or one number for all of
  /// them.
  constexpr void read_blocks(operand_read& l, node_id n, node_id from) {
    const bool broadcast = cut_.is_broadcast(n);
    shape stored = g.type(from).shape;
    std::array<std::int8_t, max_rank> axes{0, 1, 2, 3};
    if (broadcast) axes = g.nodes[std::size_t(n)].attributes.as<broadcast_op::options>().axes;
    l.at = locate(from, broadcast ? layout::plain : layout::blocked);
    l.how = access::fixed;
    for (int d = 0; d < stored.rank; ++d) {
      if (axes[std::size_t(d)] != 1 || g.type(from).size() == 1) continue;
      l.how = access::moving;
      stored[d] /= options_.lanes;
    }
    const auto own = row_major_strides(stored);
    for (int d = 0; d < stored.rank; ++d) {
      if (stored[d] > 1) l.strides[std::size_t(axes[std::size_t(d)])] = own[std::size_t(d)];
    }
  }

  /// Members that somebody outside the group reads are written to memory.
  constexpr void outputs(const fusion_group& s, plan_step& t) {
    auto put = [&](node_id n) {
      if (s.kind == step_kind::rows && only_summed(s, t, n)) {
        const auto e = t.as<rows_step>();
        row_sums h{n, e.units(), e.width, {}};
        h.at = fresh(bytes_of_sums(h));
        sums_.push_back(h);
        t.outputs[std::size_t(t.output_count++)] = {.value = n, .at = h.at, .summed = true};
        return;
      }
      if (t.output_count == int(t.outputs.size())) {
        fault_ = text() << "a fused group writes more than " << t.outputs.size() << " values";
        return;
      }
      const node_id value = s.accumulated >= 0 ? s.accumulated : s.anchor;
      const bool lanes =
          s.arrangement == layout::lanes && cut_.batched[std::size_t(value)] && !runs_alone(s.kind);
      const bool blocks = s.arrangement == layout::blocked && cut_.blocked[std::size_t(value)];
      const layout a = blocks ? layout::blocked : lanes ? layout::lanes : layout::plain;
      buffer_ref at = a == layout::plain || replaced_input(n) >= 0 ? destination(n) : buffer_ref{};
      if (at == buffer_ref{}) at = fresh(bytes_of(n, a));
      remember(n, a, {0, 0}, at);
      t.outputs[std::size_t(t.output_count++)] = {n, at};
    };
    if (s.kind == step_kind::max_pool) {
      for (int k = 0; k < 2; ++k) {
        const node_id first = cut_.get_of(s.anchor, k);
        if (k == 1 && first < 0) break;
        const tensor_type type = g.result_type(s.anchor, k);
        const buffer_ref at = fresh(type.size() * std::int64_t(size_of(options_.element)));
        for (node_id u : cut_.users(s.anchor)) {
          if (g.nodes[std::size_t(u)].attributes.as<get_attributes>().result == k)
            remember(u, layout::blocked, {0, 0}, at);
        }
        t.outputs[std::size_t(t.output_count++)] = {first, at};
      }
      return;
    }
    if (runs_alone(s.kind) || s.kind == step_kind::control) {
      const node& x = g.nodes[std::size_t(s.anchor)];
      if (!x.result_count) {
        put(s.anchor);
        if (s.kind == step_kind::control) link_result(t, t.outputs[0].at);
        return;
      }
      for (int k = 0; k < x.result_count; ++k) {
        const buffer_ref at = place_of_result(s.anchor, k);
        if (s.kind == step_kind::control)
          link_result(t, at);
        else
          t.outputs[std::size_t(t.output_count++)] = {cut_.get_of(s.anchor, k), at};
      }
      return;
    }
    if (s.pattern >= 0) {
      const attention_pattern& p = cut_.patterns[std::size_t(s.pattern)];
      if (s.kind == step_kind::attention) return put(p.result.value);
      if (p.joined) return put(p.last);
      for (const heads_walk* w : {&p.query_gradient, &p.key_gradient, &p.value_gradient})
        put(w->value);
      return;
    }
    if (s.kind == step_kind::cross_entropy) {
      const buffer_ref loss = fresh(bytes_of(s.operands[3], layout::plain));
      remember(s.operands[3], layout::plain, {0, 0}, loss);
      t.outputs[0] = {s.operands[3], loss};
      t.output_count = 1;
      if (s.operands[2] >= 0) {
        const buffer_ref at = fresh(bytes_of(s.operands[2], s.arrangement));
        remember(s.operands[2], s.arrangement, {0, 0}, at);
        t.outputs[1] = {s.operands[2], at};
        t.output_count = 2;
      }
      return;
    }
    if (s.pool_argmax >= 0) {
      // Four masks of 16 bits for each vector of pooled values.
      t.pool_argmax = fresh(bytes_of(s.accumulated, layout::lanes) /
                            (options_.lanes * std::int64_t(size_of(options_.element))) * 8);
      remember(s.pool_argmax, layout::lanes, {0, 0}, t.pool_argmax);
    }
    for (node_id m : s.members) {
      if (m == s.pool_argmax || cut_.is_alias(m)) continue;
      if (m == s.anchor && s.accumulated >= 0 && m != s.accumulated) continue;
      const node& x = g.nodes[std::size_t(m)];
      if (x.result_count || x.type.element == dtype::boolean) continue;
      if (x.op == &get_info_of && m != s.accumulated) continue;
      if (cut_.prologue(s, m)) continue;
      if (s.kind == step_kind::convolution_pool_weight_gradient && m != s.accumulated &&
          !cut_.in_registers(m))
        continue;
      bool placed = false;
      for (int k = 0; k < t.output_count; ++k) placed |= t.outputs[std::size_t(k)].value == m;
      if (!placed && read_outside(s, m)) put(m);
    }
  }
  constexpr void link_result(plan_step& t, buffer_ref at) {
    plan_.links.push_back(at);
    ++t.link_count;
  }
  constexpr std::int64_t bytes_of_sums(const row_sums& h) const {
    return h.units * h.width * std::int64_t(size_of(options_.element));
  }
  /// Floating-point operations and bytes moved, for profiles and tables.
  constexpr void count(const fusion_group& s, plan_step& t) const {
    const node& x = g.nodes[std::size_t(s.anchor)];
    if (s.pattern >= 0) {
      const attention_pattern& p = cut_.patterns[std::size_t(s.pattern)];
      const std::int64_t pairs = p.causal ? std::int64_t{p.queries} * (p.queries + 1) / 2
                                          : std::int64_t{p.queries} * p.keys;
      const std::int64_t widths = s.kind == step_kind::attention ? p.width + p.value_width
                                                                 : 3 * p.width + 2 * p.value_width;
      t.flops = 2 * p.batch * p.heads * pairs * widths;
    } else if (x.op->kind == op_kind::bilinear && x.op->space) {
      const std::array types{g.type(g.operand(s.anchor, 0)), g.type(g.operand(s.anchor, 1))};
      t.flops = 2 * x.op->space(types, x.attributes).points();
    } else if (s.kind == step_kind::control) {
      t.flops = operations_of_regions(g, x);
    } else {
      const node_id each = s.kind == step_kind::rows ? g.operand(s.anchor, 0) : s.anchor;
      t.flops = g.type(each).size() * std::int64_t(s.members.size());
    }
    for (node_id o : s.operands) {
      // What a sum is of is among its reads, or computed on the way.
      if (o >= 0 && s.kind != step_kind::reduce) t.bytes += g.type(o).bytes();
    }
    if (runs_alone(s.kind)) {
      // Of a table only the rows are read that the result has.
      const bool picks = is<gather_op>(x);
      for (node_id o : g.operands(s.anchor))
        t.bytes += picks ? std::min(g.type(o).bytes(), x.type.bytes()) : g.type(o).bytes();
    }
    for (int k = 0; k < t.read_count; ++k) {
      const operand_read& r = t.reads[std::size_t(k)];
      const bool broadcast = cut_.is_broadcast(r.value);
      const node_id from =
          broadcast || r.factor >= 0 ? g.operand(r.value, broadcast ? 0 : r.factor) : r.value;
      if (r.factor == 0) t.flops += 2 * r.depth * g.type(r.value).size();
      const row_sums* const sums = sums_of_rows(from);
      if (r.how != access::drawn) t.bytes += sums ? bytes_of_sums(*sums) : g.type(from).bytes();
    }
    for (int k = 0; k < t.output_count; ++k) {
      const node_id n = t.outputs[std::size_t(k)].value;
      if (n < 0) continue;
      t.bytes +=
          t.outputs[std::size_t(k)].summed ? bytes_of_sums(*sums_of_rows(n)) : g.type(n).bytes();
    }
  }
};

}  // namespace cella
