// Where the values of a plan lie: homes in several layouts, the steps that bring values there, and
// in the end the arena.
#pragma once

#include <cella/ops/print.hpp>
#include <cella/plan/memory.hpp>
#include <cella/plan/order.hpp>

namespace cella {

/// Byte offsets of inputs of some roles in the memory that they share, in the order of the graph's
/// inputs; other inputs get -1. `total` is the size.
struct input_offsets {
  list<std::int64_t> offset;
  std::int64_t total{};
};
constexpr input_offsets offsets_of(const graph& g, std::initializer_list<input_role> roles) {
  input_offsets r;
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    bool wanted = false;
    for (input_role role : roles) wanted |= g.inputs[i].role == role;
    r.offset.push_back(wanted ? r.total : -1);
    if (wanted) r.total += align_up(g.type(g.input(int(i))).bytes());
  }
  return r;
}

/// A plan that grows by steps. Buffers in the arena have numbers until `finish` gives them
/// addresses.
class plan_places : protected plan_order {
 public:
  constexpr const growing_plan& result() const { return plan_; }
  constexpr const text& fault() const { return fault_; }

 protected:
  constexpr plan_places(const graph& source, plan_options options)
      : plan_order(source, options),
        parameters_(offsets_of(source, {input_role::parameter, input_role::state})),
        slots_(offsets_of(source, {input_role::slot})),
        changes_inputs_(source.changes_inputs()),
        first_home_(g.nodes.size(), -1) {
    save_inputs();
  }

  struct buffer {
    std::int64_t bytes{};
    bool persistent{};  ///< keeps its content from call to call
    bool constant{};    ///< made when the program is prepared
    bool pinned{};      ///< a result: read after the last step
    int first = -1;
    int last = -1;
    int whole = -1;         ///< the buffer that this one is a stretch of, or -1
    std::int64_t offset{};  ///< in that buffer
  };
  /// A value in memory in one layout.
  struct home {
    node_id value;
    layout arrangement;
    std::array<int, 2> border;
    buffer_ref at;  // space -2: offset is the index of an arena buffer
    int next;       // of the same value, or -1
  };
  /// What random numbers that are not in memory are drawn from.
  struct stream {
    node_id draw;
    buffer_ref at;
  };
  /// Of a value of a row-wise group of which only sums of some rows are written: [units][width].
  struct row_sums {
    node_id value;
    std::int64_t units;
    std::int64_t width;
    buffer_ref at;
  };
  static constexpr std::int32_t pending = -2;

  /// Where value `n` is wanted: in the place of an input, in a bound result, or as a stretch of a
  /// concatenation.
  constexpr buffer_ref destination(node_id n) {
    if (const node_id joined = cut_.placed_in(n); joined >= 0) {
      std::int64_t before = 0;
      for (node_id o : g.operands(joined)) {
        if (source(o) == n) break;
        before += g.type(o).bytes();
      }
      return behind(assembled(joined), before);
    }
    const std::int32_t input = replaced_input(n);
    if (input >= 0) return input_home(g.input(input));
    for (std::size_t i = 0; options_.results_bound && i < g.outputs.size(); ++i) {
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

  constexpr buffer_ref fresh(std::int64_t bytes, bool persistent = false) {
    buffers_.push_back({bytes, persistent});
    return {pending, std::int64_t(buffers_.size()) - 1};
  }
  /// What lies `offset` bytes behind `at`.
  constexpr buffer_ref behind(buffer_ref at, std::int64_t offset) {
    if (at.space != pending) return {at.space, at.offset + offset};
    const buffer& b = buffers_[std::size_t(at.offset)];
    buffer stretch;
    stretch.whole = b.whole < 0 ? int(at.offset) : b.whole;
    stretch.offset = b.offset + offset;
    buffers_.push_back(stretch);
    return {pending, std::int64_t(buffers_.size()) - 1};
  }
  constexpr const buffer& whole_buffer(buffer_ref at) const {
    const buffer& b = buffers_[std::size_t(at.offset)];
    return b.whole >= 0 ? buffers_[std::size_t(b.whole)] : b;
  }
  constexpr buffer& whole_buffer(buffer_ref at) {
    return const_cast<buffer&>(std::as_const(*this).whole_buffer(at));
  }
  constexpr std::int64_t bytes_of(node_id n, layout a, std::array<int, 2> border = {0, 0}) const {
    const tensor_type t = g.type(n);
    if (a == layout::plain) return t.bytes();
    // Positions of maxima are kept as numbers of the program's type.
    if (a == layout::blocked) return t.size() * std::int64_t(size_of(options_.element));
    const std::int64_t blocks = (t[0] + options_.lanes - 1) / options_.lanes;
    std::int64_t features = 1;
    for (int d = 1; d < t.rank(); ++d)
      features *= t[d] + (d >= 2 && t.rank() == 4 ? 2 * border[std::size_t(d - 2)] : 0);
    return blocks * features * options_.lanes * std::int64_t(size_of(t.element));
  }
  constexpr const home* find(node_id n, layout a, std::array<int, 2> border) const {
    for (int i = first_home_[std::size_t(n)]; i >= 0; i = homes_[std::size_t(i)].next) {
      const home& h = homes_[std::size_t(i)];
      if (h.arrangement == a && h.border == border) return &h;
    }
    return nullptr;
  }
  constexpr buffer_ref input_home(node_id n) const {
    const int i = input_at_[std::size_t(n)];
    if (i < 0) return {};
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
  constexpr buffer_ref locate(node_id n, layout a, std::array<int, 2> border = {0, 0}) {
    n = source(n);
    if (const home* h = find(n, a, border)) return h->at;
    const tensor_type t = g.type(n);
    if (a == layout::plain) {
      if (cut_.is_input(n)) return remember(n, a, border, input_home(n));
      if (cut_.is_assembled(n)) return assembled(n);
      if (cut_.is_contiguous_view(n)) return remember(n, a, border, stretch(n));
      if (find(n, layout::lanes, {0, 0})) {
        plan_step s = conversion(step_kind::unpack, n, locate(n, layout::lanes), {0, 0});
        return emit_conversion(s, n, a, border);
      }
      if (find(n, layout::blocked, {0, 0})) {
        plan_step s = conversion(step_kind::unpack_blocks, n, locate(n, layout::blocked), {0, 0});
        return emit_conversion(s, n, a, border);
      }
      // A constant or a broadcast that some kernel wants in memory.
      const step_kind kind = default_kernel(g, n, options_.element);
      plan_step s{.kind = kind, .anchor = n, .accumulated = n};
      int k = 0;
      for (node_id o : g.operands(n)) s.in[std::size_t(k++)] = locate(o, layout::plain);
      return emit_conversion(s, n, a, border);
    }
    if (a == layout::blocked) {
      plan_step s = conversion(step_kind::pack_blocks, n, locate(n, layout::plain), border);
      return emit_conversion(s, n, a, border);
    }
    if (border != std::array<int, 2>{0, 0} && find(n, layout::lanes, {0, 0})) {
      plan_step s = conversion(step_kind::border, n, locate(n, layout::lanes), border);
      return emit_conversion(s, n, a, border);
    }
    plan_step s = conversion(step_kind::pack, n, locate(n, layout::plain), border);
    (void)t;
    return emit_conversion(s, n, a, border);
  }
  constexpr buffer_ref stretch(node_id n) {
    const node_id from = g.operand(n, 0);
    const auto strides = row_major_strides(g.type(from).shape);
    const auto o = g.nodes[std::size_t(n)].attributes.as<slice_op::options>();
    std::int64_t first = 0;
    for (std::size_t d = 0; d < std::size_t(g.type(n).rank()); ++d)
      first += o.start[d] * strides[d];
    return behind(locate(from, layout::plain), first * std::int64_t(size_of(g.type(n).element)));
  }
  /// What random numbers `n` are drawn from.
  constexpr buffer_ref stream_of(node_id n) {
    for (const stream& d : streams_) {
      if (d.draw == n) return d.at;
    }
    plan_step s{.kind = step_kind::random_stream, .anchor = n, .accumulated = n};
    s.in[0] = locate(g.operand(n, 0), layout::plain);
    s.output_count = 1;
    s.outputs[0].at = fresh(8);
    emit(s);
    streams_.push_back({n, s.outputs[0].at});
    return s.outputs[0].at;
  }
  constexpr buffer_ref remember(node_id n, layout a, std::array<int, 2> border, buffer_ref at) {
    homes_.push_back({n, a, border, at, first_home_[std::size_t(n)]});
    first_home_[std::size_t(n)] = int(homes_.size()) - 1;
    return at;
  }
  /// What pack and its kin need. Tensors that are no images are images of one pixel.
  constexpr plan_step conversion(step_kind kind, node_id n, buffer_ref from,
                                 std::array<int, 2> border) const {
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
  constexpr buffer_ref emit_conversion(plan_step s, node_id n, layout a,
                                       std::array<int, 2> border) {
    s.arrangement = a;
    s.output_count = 1;
    s.outputs[0] = {n, fresh(bytes_of(n, a, border))};
    emit(s);
    return remember(n, a, border, s.outputs[0].at);
  }

  /// Where a concatenation is put together.
  constexpr buffer_ref assembled(node_id n) {
    if (const home* h = find(n, layout::plain, {0, 0})) return h->at;
    const buffer_ref at = destination(n);
    return remember(n, layout::plain, {0, 0}, at.valid() ? at : fresh(bytes_of(n, layout::plain)));
  }
  constexpr void emit_copy(node_id n, buffer_ref from, buffer_ref to) {
    plan_step s{.kind = step_kind::copy, .anchor = n, .accumulated = n};
    s.in[0] = from;
    s.output_count = 1;
    s.outputs[0] = {n, to};
    s.shape = copy_step{g.type(n).bytes()};
    emit(s);
  }
  /// Whether node `n` has the same value in many calls: a parameter of a program that changes none
  /// and what is made of it beforehand, a constant of a loop.
  constexpr bool keeps_its_value(node_id n) const {
    n = cut_.whole(n);
    const int i = input_at_[std::size_t(n)];
    if (options_.region) return i >= options_.first_constant;
    if (i < 0) {
      const home* h = find(n, layout::plain, {0, 0});
      return h && h->at.space == pending && whole_buffer(h->at).constant;
    }
    return !changes_inputs_ && owned_by_cell(g.inputs[std::size_t(i)].role);
  }
  /// Values that depend on nothing (the basis of a Jacobian) are made once, if they are not large;
  /// so is what depends on parameters alone (scaled filters), if none is changed. The plan of a
  /// region has no call before which that could be done.
  constexpr bool is_constant(const plan_step& s) const {
    if (options_.region || s.arrangement != layout::plain || s.carried || s.side >= 0) return false;
    if (!runs_alone(s.kind) && s.kind != step_kind::elementwise && s.kind != step_kind::copy)
      return false;
    if (s.kind == step_kind::generic && is<print_op>(g.nodes[std::size_t(s.anchor)])) return false;
    bool constant = true, parameters = false;
    auto read = [&](const buffer_ref& r) {
      if (r == buffer_ref{}) return;
      if (r.space == parameter_space && !changes_inputs_)
        parameters = true;
      else
        constant = constant && r.space == pending && whole_buffer(r).constant;
    };
    for (const auto& r : s.in) read(r);
    for (int k = 0; k < s.read_count; ++k) read(s.reads[std::size_t(k)].at);
    for (int k = 0; k < s.link_count; ++k) read(plan_.links[std::size_t(s.first_link + k)]);
    for (int k = 0; constant && k < s.output_count; ++k) {
      const step_output& o = s.outputs[std::size_t(k)];
      if (o.part || o.at.space != pending) return false;
      const buffer& b = buffers_[std::size_t(o.at.offset)];
      if (b.whole >= 0) return false;
      constant = b.first < 0 && (parameters || b.bytes <= most_constant_bytes);
    }
    return constant && s.output_count > 0;
  }
  static constexpr std::int64_t most_constant_bytes = 1 << 18;
  /// Whether the step only reads operand k when it is prepared: filters that it packs and keeps.
  static constexpr bool reads_when_prepared(const plan_step& s, std::size_t k) {
    const bool convolves =
        s.kind == step_kind::convolution || s.kind == step_kind::convolution_input_gradient;
    return convolves && s.arrangement == layout::blocked && k == 1 &&
           s.as<convolution_step>().keeps_filters;
  }

  constexpr void emit(plan_step s) {
    const int at = int(plan_.steps.size());
    s.constant = is_constant(s);
    for (int k = 0; s.constant && k < s.output_count; ++k)
      buffers_[std::size_t(s.outputs[std::size_t(k)].at.offset)].constant = true;
    auto touch = [&](const buffer_ref& r, bool when_prepared) {
      if (r.space != pending) return;
      buffer& b = whole_buffer(r);
      if (b.first < 0) b.first = at;
      b.last = at;
      // What only preparations read need not be kept behind them.
      b.persistent |= b.constant && !when_prepared;
    };
    for (std::size_t k = 0; k < s.in.size(); ++k)
      touch(s.in[k], s.constant || reads_when_prepared(s, k));
    touch(s.scratch, s.constant);
    touch(s.pool_argmax, s.constant);
    for (int k = 0; k < s.output_count; ++k) touch(s.outputs[std::size_t(k)].at, s.constant);
    for (int k = 0; k < s.read_count; ++k) touch(s.reads[std::size_t(k)].at, s.constant);
    for (int k = 0; k < s.link_count; ++k)
      touch(plan_.links[std::size_t(s.first_link + k)], s.constant);
    plan_.steps.push_back(s);
  }

  constexpr void finish() {
    for (std::size_t i = 0; i < g.outputs.size(); ++i) {
      const node_id n = g.regions[0].outputs[i];
      const std::int32_t input = g.outputs[i].updates;
      if (input >= 0 && in_place_[i]) continue;
      const buffer_ref at = saved_[i] != buffer_ref{} ? saved_[i] : locate(n, layout::plain);
      if (input < 0 && !options_.results_bound) {
        if (at.space == pending) {
          buffer& b = whole_buffer(at);
          b.pinned = true;
          b.persistent |= b.constant;
        }
        plan_.results.push_back({n, at});
        continue;
      }
      const buffer_ref to = input < 0 ? bound_result(i) : input_home(g.input(input));
      if (at != to) emit_copy(n, at, to);
      if (input < 0) plan_.results.push_back({n, to});
    }
    list<lifetime> lives;
    for (const buffer& b : buffers_) {
      const int first = b.persistent || b.first < 0 ? 0 : b.first;
      const int last = b.persistent || b.pinned ? int(plan_.steps.size()) : b.last < 0 ? 0 : b.last;
      lives.push_back({b.bytes, first, last, -1});
      plan_.arena_bytes_without_reuse += align_up(b.bytes);
    }
    plan_.arena_bytes = plan_memory(lives);
    plan_.live_bytes = largest_live_set(lives);
    plan_.parameter_bytes = parameters_.total;
    plan_.slot_bytes = slots_.total;
    auto settle = [&](buffer_ref& r) {
      if (r.space != pending) return;
      const buffer& b = buffers_[std::size_t(r.offset)];
      r = {arena_space, b.whole < 0 ? lives[std::size_t(r.offset)].offset
                                    : lives[std::size_t(b.whole)].offset + b.offset};
    };
    for (plan_step& s : plan_.steps) {
      for (auto& r : s.in) settle(r);
      settle(s.scratch);
      settle(s.pool_argmax);
      for (int k = 0; k < s.output_count; ++k) settle(s.outputs[std::size_t(k)].at);
      for (int k = 0; k < s.read_count; ++k) settle(s.reads[std::size_t(k)].at);
    }
    for (plan_value& r : plan_.results) settle(r.at);
    for (buffer_ref& r : plan_.links) settle(r);
  }

  growing_plan plan_;
  text fault_;
  list<row_sums> sums_;

 private:
  /// An output may be the value that an input had before the call, while that input is replaced
  /// (`h` in `previous, h = h, next`): such a value is copied before anything is written.
  constexpr void save_inputs() {
    saved_.assign(g.outputs.size(), {});
    for (std::size_t i = 0; i < g.outputs.size(); ++i) {
      const node_id n = source(g.regions[0].outputs[i]);
      node_id from = n;
      while (cut_.is_alias(from) || cut_.is_view(from)) from = g.operand(from, 0);
      const bool replaced = is_replaced_[std::size_t(from)];
      if (!replaced || (g.outputs[i].updates >= 0 && g.input(g.outputs[i].updates) == n)) continue;
      const bool bound = options_.results_bound && g.outputs[i].updates < 0;
      saved_[i] = bound ? bound_result(i) : fresh(bytes_of(n, layout::plain));
      emit_copy(n, locate(n, layout::plain), saved_[i]);
    }
  }

  input_offsets parameters_;
  input_offsets slots_;
  bool changes_inputs_;
  list<buffer_ref> saved_;  ///< for each output: the copy of an input's old value
  list<buffer> buffers_;
  list<home> homes_;
  list<stream> streams_;
  list<int> first_home_;  ///< of each node, or -1
};

}  // namespace cella
