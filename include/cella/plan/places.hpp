// Where the values of a plan lie: homes in several formats, and the steps that bring values there.
#pragma once

#include <cella/plan/in_place.hpp>
#include <cella/plan/options.hpp>
#include <cella/plan/order.hpp>

namespace cella {

/// A plan that grows by steps. `Planning` is the back end's: see planner.hpp.
template <class Planning>
class value_places {
  /// Zeros round the images of a value: above and below, and beside them.
  using border_widths = std::array<int, 2>;
  static constexpr border_widths no_border{0, 0};

  /// A value in memory in one format.
  struct home {
    node_id value;
    layout form;
    border_widths border;
    buffer_ref at;
    int next;  // of the same value, or -1
  };
  /// What random numbers that are not in memory are drawn from.
  struct stream {
    node_id draw;
    buffer_ref at;
  };

 public:
  /// Of a value of a row-wise group of which only sums of some rows are written: [units][width].
  struct row_sums {
    node_id value;
    std::int64_t units;
    std::int64_t width;
    std::int64_t bytes;
    buffer_ref at;
  };

  constexpr value_places(const fusion_groups& groups, const group_order& order,
                         const plan_options& wanted)
      : c(groups),
        g(groups.g),
        options(wanted),
        order_(order),
        input_at_(g.nodes.size(), -1),
        parameters_(offsets_of(g, {input_role::parameter, input_role::state})),
        slots_(offsets_of(g, {input_role::slot})),
        changes_inputs_(g.changes_inputs()),
        first_home_(g.nodes.size(), -1) {
    for (std::size_t i = 0; i < g.regions[0].inputs.size(); ++i)
      input_at_[std::size_t(g.input(int(i)))] = int(i);
    save_inputs();
  }

  const fusion_groups& c;
  const graph& g;
  const plan_options& options;
  growing_plan plan;
  arena_buffers arena;

  /// The input that value `n` replaces and that it may overwrite, or -1.
  constexpr std::int32_t replaced_input(node_id n) const { return order_.replaces[std::size_t(n)]; }

  /// Where value `n` is wanted: in the place of an input, in a bound result, or as a part of a
  /// concatenation.
  constexpr buffer_ref destination(node_id n) {
    if (const node_id joined = c.placed_in(n); joined >= 0) {
      std::int64_t before = 0;
      for (node_id o : g.operands(joined)) {
        if (c.source(o) == n) break;
        before += g.type(o).bytes();
      }
      return arena.behind(assembled(joined), before);
    }
    const std::int32_t input = replaced_input(n);
    if (input >= 0) return input_home(g.input(input));
    for (std::size_t i = 0; options.results_bound && i < g.outputs.size(); ++i) {
      if (g.outputs[i].updates < 0 && g.regions[0].outputs[i] == n) return bound_result(i);
    }
    return {};
  }
  constexpr buffer_ref bound_result(std::size_t output) const {
    std::int32_t space = first_argument;
    for (const input_info& in : g.inputs) space += in.role == input_role::argument;
    for (std::size_t i = 0; i < output; ++i) space += g.outputs[i].updates < 0;
    return {space, 0};
  }

  constexpr std::int64_t bytes_of(node_id n, layout a, border_widths border = no_border) const {
    const tensor_type t = g.type(n);
    return a == layout::plain ? t.bytes() : Planning::bytes(t, a, border, c.machine, c.element);
  }
  constexpr buffer_ref input_home(node_id n) const {
    if (c.is_constant_tensor(n)) {
      const auto o = c.at(n).attributes.template as<values_options>();
      return {constant_space, g.constants.tensors[std::size_t(o.index)].offset};
    }
    const int i = input_at_[std::size_t(n)];
    if (i < 0) return {};
    if (options.inputs_apart) return {first_argument + i, 0};
    const input_info& in = g.inputs[std::size_t(i)];
    switch (in.role) {
      case input_role::argument:
        return {first_argument + in.index, 0};
      case input_role::slot:
        return {slot_space, slots_.offset[std::size_t(i)]};
      case input_role::scalar:
        return {scalar_space, in.index * std::int64_t{8}};
      default:
        return {parameter_space, parameters_.offset[std::size_t(i)]};
    }
  }

  /// The address of `n` in a layout; appends the steps that bring it there if it is not yet.
  constexpr buffer_ref locate(node_id n, layout a, border_widths border = no_border) {
    n = holder(n, a, border);
    if (const home* h = find(n, a, border)) return h->at;
    if (a != layout::plain) {
      const bool bordered = border != no_border && find(holder(n, a), a);
      const step_kind kind = bordered ? step_kind::border : packing(a);
      const buffer_ref from = locate(n, bordered ? a : layout::plain);
      return emit_conversion(conversion(kind, n, from, border), n, a, border);
    }
    if (c.is_input(n)) return remember(n, a, input_home(n), border);
    if (c.is_assembled(n)) return assembled(n);
    if (c.is_contiguous_view(n)) return remember(n, a, contiguous_view(n), border);
    for (int i = first_home_[std::size_t(n)]; i >= 0; i = homes_[std::size_t(i)].next) {
      const home h = homes_[std::size_t(i)];
      if (h.border != no_border) continue;
      return emit_conversion(conversion(unpacking(h.form), n, h.at), n, a, border);
    }
    // A constant or a broadcast that some kernel wants in memory.
    plan_step s{.kind = c.kernel_alone(n), .anchor = n, .accumulated = n};
    int k = 0;
    for (node_id o : g.operands(n)) s.in[std::size_t(k++)] = locate(o, layout::plain);
    return emit_conversion(s, n, a, border);
  }
  constexpr buffer_ref contiguous_view(node_id n) {
    const node_id from = g.operand(n, 0);
    const auto strides = row_major_strides(g.type(from).shape);
    const auto o = c.at(n).attributes.as<slice_op::options>();
    std::int64_t first = 0;
    for (std::size_t d = 0; d < std::size_t(g.type(n).rank()); ++d)
      first += o.start[d] * strides[d];
    return arena.behind(locate(from, layout::plain),
                        first * std::int64_t(size_of(g.type(n).element)));
  }
  /// What random numbers `n` are drawn from.
  constexpr buffer_ref stream_of(node_id n) {
    for (const stream& d : streams_) {
      if (d.draw == n) return d.at;
    }
    plan_step s{.kind = step_kind::random_stream, .anchor = n, .accumulated = n};
    s.in[0] = locate(g.operand(n, 0), layout::plain);
    s.output_count = 1;
    s.outputs[0].at = arena.fresh(8);
    emit(s);
    streams_.push_back({n, s.outputs[0].at});
    return s.outputs[0].at;
  }
  /// Makes a place for the sums of some rows of `n`, one for each unit of work.
  constexpr buffer_ref sum_rows(node_id n, const rows_step& e) {
    const std::int64_t bytes = e.units() * e.width * std::int64_t(size_of(c.element));
    sums_.push_back({n, e.units(), e.width, bytes, arena.fresh(bytes)});
    return sums_.back().at;
  }
  /// Where the sums of some rows of `n` lie, if it is not written as it is; null otherwise.
  constexpr const row_sums* sums_of_rows(node_id n) const {
    for (const row_sums& h : sums_) {
      if (h.value == n) return &h;
    }
    return nullptr;
  }
  constexpr buffer_ref remember(node_id n, layout a, buffer_ref at,
                                border_widths border = no_border) {
    homes_.push_back({n, a, border, at, first_home_[std::size_t(n)]});
    first_home_[std::size_t(n)] = int(homes_.size()) - 1;
    return at;
  }
  /// What pack and its kin need. Tensors that are no images are images of one pixel.
  constexpr plan_step conversion(step_kind kind, node_id n, buffer_ref from,
                                 border_widths border = no_border) const {
    const tensor_type t = g.type(n);
    plan_step s{.kind = kind, .anchor = n, .accumulated = n};
    s.in[0] = from;
    const bool image = t.rank() == 4;
    s.shape = image_step{t[0],
                         image ? t[1] : int(t.shape.size(1, t.rank())),
                         image ? t[2] : 1,
                         image ? t[3] : 1,
                         border[0],
                         border[1]};
    return s;
  }
  constexpr buffer_ref emit_conversion(plan_step s, node_id n, layout a, border_widths border) {
    s.arrangement = a;
    s.output_count = 1;
    s.outputs[0] = {.value = n, .at = arena.fresh(bytes_of(n, a, border)), .form = a};
    emit(s);
    return remember(n, a, s.outputs[0].at, border);
  }

  /// Makes a place for result `k` of node `n`.
  constexpr buffer_ref place_of_result(node_id n, int k) {
    const node_id first = c.get_of(n, k);
    buffer_ref at = first >= 0 && replaced_input(first) < 0 ? destination(first) : buffer_ref{};
    if (!at.valid()) at = arena.fresh(g.result_type(n, k).bytes());
    for (node_id u : c.users(n)) {
      if (c.at(u).attributes.template as<get_attributes>().result == k)
        remember(u, layout::plain, at);
    }
    return at;
  }

  /// Where a concatenation is put together.
  constexpr buffer_ref assembled(node_id n) {
    if (const home* h = find(n, layout::plain)) return h->at;
    const buffer_ref at = destination(n);
    return remember(n, layout::plain, at.valid() ? at : arena.fresh(bytes_of(n, layout::plain)));
  }
  constexpr void emit_copy(node_id n, buffer_ref from, buffer_ref to) {
    plan_step s{.kind = step_kind::copy, .anchor = n, .accumulated = n};
    s.in[0] = from;
    s.output_count = 1;
    s.outputs[0] = {.value = n, .at = to};
    s.shape = copy_step{g.type(n).bytes()};
    emit(s);
  }
  /// Whether node `n` has the same value in many calls: a parameter of a program that changes none
  /// and what is made of it beforehand, a constant of a loop.
  constexpr bool keeps_its_value(node_id n) const {
    n = c.whole(n);
    const int i = input_at_[std::size_t(n)];
    if (c.is_constant_tensor(n)) return options.is_prepared();
    if (options.region) return i >= options.first_constant;
    if (i < 0) {
      const home* h = find(n, layout::plain);
      return h && arena.holds(h->at) && arena.whole(h->at).constant;
    }
    return !changes_inputs_ && owned_by_cell(g.inputs[std::size_t(i)].role);
  }
  /// Values that depend on nothing (the basis of a Jacobian) are made once, if they are not large;
  /// so is what depends on parameters alone (scaled filters), if none is changed. The plan of a
  /// region has no call before which that could be done.
  constexpr bool is_constant(const plan_step& s) const {
    if (options.region || s.arrangement != layout::plain || s.carried || s.side >= 0) return false;
    if (!step_traits(s.kind).alone && s.kind != step_kind::elementwise && s.kind != step_kind::copy)
      return false;
    if (c.at(s.anchor).op->traits.impure) return false;
    bool constant = true, parameters = false;
    auto read = [&](const buffer_ref& r) {
      if (r == buffer_ref{} || r.space == constant_space) return;
      if (holds_parameters(r) && !changes_inputs_)
        parameters = true;
      else
        constant = constant && arena.holds(r) && arena.whole(r).constant;
    };
    for (const auto& r : s.in) read(r);
    for (int k = 0; k < s.read_count; ++k) read(s.reads[std::size_t(k)].at);
    for (int k = 0; k < s.link_count; ++k) read(plan.links[std::size_t(s.first_link + k)]);
    for (int k = 0; constant && k < s.output_count; ++k) {
      const step_output& o = s.outputs[std::size_t(k)];
      if (o.part || !arena.holds(o.at)) return false;
      const arena_buffers::buffer& b = arena[o.at];
      if (b.whole >= 0) return false;
      constant = b.first < 0 && (parameters || b.bytes <= most_constant_bytes);
    }
    return constant && s.output_count > 0;
  }
  constexpr bool holds_parameters(const buffer_ref& r) const {
    if (!options.inputs_apart) return r.space == parameter_space;
    return r.space >= first_argument &&
           owned_by_cell(g.inputs[std::size_t(r.space - first_argument)].role);
  }
  static constexpr std::int64_t most_constant_bytes = 1 << 18;
  constexpr void emit(plan_step s) {
    s.constant = is_constant(s);
    arena.use(int(plan.steps.size()), s, plan.links);
    plan.steps.push_back(s);
  }

  constexpr void finish() {
    for (std::size_t i = 0; i < g.outputs.size(); ++i) {
      const node_id n = g.regions[0].outputs[i];
      const std::int32_t input = g.outputs[i].updates;
      if (input >= 0 && order_.in_place[i]) continue;
      const buffer_ref at = saved_[i] != buffer_ref{} ? saved_[i] : locate(n, layout::plain);
      if (input < 0 && !options.results_bound) {
        arena.pin(at);
        plan.results.push_back({n, at});
        continue;
      }
      const buffer_ref to = input < 0 ? bound_result(i) : input_home(g.input(input));
      if (at != to) emit_copy(n, at, to);
      if (input < 0) plan.results.push_back({n, to});
    }
    plan.parameter_bytes = parameters_.total;
    plan.slot_bytes = slots_.total;
    compute_in_place(g, plan, arena);
    arena.settle(plan);
  }

 private:
  /// An output may be the value that an input had before the call, while that input is replaced
  /// (`h` in `previous, h = h, next`): such a value is copied before anything is written.
  constexpr void save_inputs() {
    saved_.assign(g.outputs.size(), {});
    flags replaced(g.nodes.size(), 0);
    for (const output_info& o : g.outputs) {
      if (o.updates >= 0) replaced[std::size_t(g.input(o.updates))] = 1;
    }
    for (std::size_t i = 0; i < g.outputs.size(); ++i) {
      const node_id n = c.source(g.regions[0].outputs[i]);
      node_id from = n;
      while (c.is_alias(from) || c.is_view(from)) from = g.operand(from, 0);
      if (!replaced[std::size_t(from)] ||
          (g.outputs[i].updates >= 0 && g.input(g.outputs[i].updates) == n))
        continue;
      const bool bound = options.results_bound && g.outputs[i].updates < 0;
      saved_[i] = bound ? bound_result(i) : arena.fresh(bytes_of(n, layout::plain));
      emit_copy(n, locate(n, layout::plain), saved_[i]);
    }
  }

  /// The node under which a value is known in a format: the one of which `n` is another shape,
  /// unless the format has channels or a border, which that one's shape would place elsewhere.
  constexpr node_id holder(node_id n, layout a, border_widths border = no_border) const {
    const node_id source = c.source(n);
    const bool any_shape = a != layout::blocked && border == no_border;
    return any_shape || g.type(source).shape == g.type(n).shape ? source : n;
  }
  constexpr const home* find(node_id n, layout a, border_widths border = no_border) const {
    for (int i = first_home_[std::size_t(n)]; i >= 0; i = homes_[std::size_t(i)].next) {
      const home& h = homes_[std::size_t(i)];
      if (h.form == a && h.border == border) return &h;
    }
    return nullptr;
  }
  const group_order& order_;
  list<int> input_at_;  ///< index of the input that a node is, or -1
  input_offsets parameters_;
  input_offsets slots_;
  bool changes_inputs_;
  list<buffer_ref> saved_;  ///< for each output: the copy of an input's old value
  list<home> homes_;
  list<stream> streams_;
  list<row_sums> sums_;
  list<int> first_home_;  ///< of each node, or -1
};

}  // namespace cella
