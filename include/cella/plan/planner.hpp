// From a graph to a plan, stage by stage: uses and formats of values -> groups -> order -> places
// -> steps. What only a back end knows it says as `Planning`, a struct of static functions that
// differs from `plain_planning` where the back end has more than plain tensors.
#pragma once

#include <cella/plan/fuser.hpp>
#include <cella/plan/operands.hpp>
#include <cella/plan/outputs.hpp>
#include <cella/plan/reads.hpp>

namespace cella {

/// Planning for a back end that keeps all tensors plain. Others derive from it and say where they
/// differ; `machine` they all say.
struct plain_planning {
  // ---- before groups are formed

  /// The graph that is planned and run in place of one of a program of type `element`, with the
  /// same inputs and results.
  static constexpr graph prepared(graph g, dtype /*element*/) { return g; }
  static constexpr value_formats choose_formats(const graph& g, const plan_options&,
                                                const plan_target&) {
    return value_formats(g);
  }
  // ---- groups

  /// Says which nodes read their operands as memory holds them: fusion_groups::read_as_stored.
  static constexpr void read_as_stored(fusion_groups&, const plan_options&) {}
  /// Starts a group of the back end's own with node `n`, if there is one: see fuser.
  static constexpr bool match(auto& /*fuser*/, node_id) { return false; }
  /// The same for a node that yields truth values.
  static constexpr bool match_truths(auto& /*fuser*/, node_id) { return false; }
  /// The format in which a sum, and the loss of a batch, are computed.
  static constexpr layout sum_format(const fusion_groups&, node_id) { return layout::plain; }
  static constexpr layout loss_format(const fusion_groups&, node_id /*logits*/) {
    return layout::plain;
  }
  /// Whether loops over values in format `a` can repeat an operand that is kept in format `kept`.
  static constexpr bool loops_repeat(layout /*a*/, const broadcast_op::options&, layout /*kept*/) {
    return true;
  }
  /// Sums that kernels of other groups yield as well: see group_order::carry.
  static constexpr void carry_sums(const fusion_groups&, group_order&) {}

  // ---- steps

  /// Bytes of a tensor in a format other than plain, with a zero border round each image.
  static constexpr std::int64_t bytes(const tensor_type& t, layout, std::array<int, 2> /*border*/,
                                      const plan_target&, dtype /*element*/) {
    return t.bytes();
  }
  /// How many vectors of `lanes` elements there are in a format other than plain, axis by axis.
  static constexpr shape vectors(const shape& s, layout, int /*lanes*/) { return s; }
  /// The operands of a step, if they are not plain or not the usual ones.
  static constexpr bool operands(auto& /*places*/, const fusion_group&, plan_step&) {
    return false;
  }
  /// Memory that the kernel needs besides: `scratch`, and `in[3]` for what it keeps.
  static constexpr void scratch(auto& /*places*/, const fusion_group&, plan_step&) {}
  /// How loops in format `a`, other than plain, read a value.
  static constexpr void read_in_loops(auto& /*places*/, layout /*a*/, const plan_step&,
                                      operand_read&) {}
  /// The outputs of a step, if they are not the values of the group that others read.
  static constexpr bool outputs(auto& /*places*/, const fusion_group&, plan_step&) { return false; }
};

/// The plan of a graph.
template <class Planning>
class planner {
 public:
  constexpr planner(const graph& g, const plan_options& options,
                    const plan_target& machine = Planning::machine)
      : options_(options),
        machine_(machine),
        formats_(Planning::choose_formats(g, options, machine)),
        groups_(g, options.element, machine_, formats_),
        order_(order_of(fused())),
        places_(groups_, order_, options_),
        operands_(places_),
        reads_(places_),
        outputs_(places_) {
    for (int i : order_.order) {
      if (order_.carrier[std::size_t(i)] < 0) write(i);
    }
    places_.finish();
  }
  constexpr const growing_plan& result() const { return places_.plan; }
  /// Why there is no plan; empty if there is.
  constexpr const text& fault() const {
    return reads_.fault().empty() ? outputs_.fault() : reads_.fault();
  }

 private:
  constexpr const fusion_groups& fused() {
    Planning::read_as_stored(groups_, options_);
    fuser<Planning>{groups_};
    return groups_;
  }
  static constexpr group_order order_of(const fusion_groups& groups) {
    group_order order = order_groups(groups);
    Planning::carry_sums(groups, order);
    return order;
  }

  /// The step of a group, behind that of the sum that its kernel yields as well.
  constexpr void write(int index, bool carried = false) {
    const int side = order_.side[std::size_t(index)];
    if (side >= 0) write(side, true);
    const fusion_group& s = groups_.groups[std::size_t(index)];
    if (s.kind == step_kind::move) return write_boxes(s);
    plan_step t{.kind = s.kind,
                .arrangement = s.arrangement,
                .anchor = s.anchor,
                .accumulated = s.accumulated};
    operands_.find(s, t);
    reads_.find(s, t);
    t.carried = carried;
    if (side >= 0) t.side = int(places_.plan.steps.size()) - 1;
    outputs_.place(s, t);
    outputs_.count(s, t);
    places_.emit(t);
  }
  /// A step for each box. One alone is the whole result.
  constexpr void write_boxes(const fusion_group& s) {
    const buffer_ref to = places_.assembled(s.anchor);
    const auto bytes = std::int64_t(size_of(groups_.g.type(s.anchor).element));
    for (int i = s.first_box; i < s.first_box + s.box_count; ++i) {
      const box_loops& b = groups_.boxes[std::size_t(i)];
      plan_step t{.kind = s.kind, .anchor = s.anchor, .accumulated = s.anchor};
      step_output& o = t.outputs[std::size_t(t.output_count++)];
      o = {.value = s.anchor, .at = to, .part = s.box_count > 1, .first = b.first_written};
      operand_read& r = t.reads[0];
      if (b.from >= 0) {
        t.read_count = 1;
        r = {.value = b.from, .how = access::moving, .at = places_.locate(b.from, layout::plain)};
        r.first = b.first_read;
      }
      t.bytes = bytes * (1 + t.read_count);
      t.loops = b.loops.rank;
      for (std::size_t d = 0; d < std::size_t(t.loops); ++d) {
        t.loop[d] = b.loops.count[d];
        r.strides[d] = b.loops.from[d];
        o.strides[d] = b.loops.to[d];
        t.bytes *= t.loop[d];
      }
      places_.emit(t);
    }
  }

  plan_options options_;
  plan_target machine_;
  value_formats formats_;
  fusion_groups groups_;
  group_order order_;
  value_places<Planning> places_;
  step_operands<Planning> operands_;
  step_reads<Planning> reads_;
  step_outputs<Planning> outputs_;
};

}  // namespace cella
