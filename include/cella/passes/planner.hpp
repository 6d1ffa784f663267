// Turns a graph into a plan: groups in an order, their memory, and the steps that move values from
// one layout to another.
#pragma once

#include <cella/ops/print.hpp>
#include <cella/passes/fuse.hpp>
#include <cella/passes/memory.hpp>
#include <cella/passes/winograd.hpp>
#include <tuple>

namespace cella {

/// What a plan is made for.
struct plan_options {
  dtype element = dtype::f32;
  int lanes = 16;  ///< SIMD lanes of that type
  /// Results are written to the spaces behind those of the arguments, one for each, instead of into
  /// the arena: for the plan of a region, whose results lie where the control node wants them.
  bool results_bound{};
  /// Inputs from this index on keep their values from call to call: the constants of a loop.
  int first_constant = 1 << 30;
};

/// Byte offsets of inputs of some roles in the memory that they share, in the order of the graph's
/// inputs; other inputs get -1. `total` is the size.
struct input_offsets {
  std::vector<std::int64_t> offset;
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

class planner {
 public:
  constexpr planner(const graph& source, plan_options options)
      : g(source),
        options_(options),
        arrangement_(options.results_bound ? layout::plain : choose_layout(source, options.lanes)),
        cut_(source, options.element, arrangement_, options.lanes),
        parameters_(offsets_of(source, {input_role::parameter, input_role::state})),
        slots_(offsets_of(source, {input_role::slot})) {
    first_home_.assign(g.nodes.size(), -1);
    input_at_.assign(g.nodes.size(), -1);
    for (std::size_t i = 0; i < g.regions[0].inputs.size(); ++i)
      input_at_[std::size_t(g.input(int(i)))] = int(i);
    updates_.assign(g.nodes.size(), 0);
    for (std::size_t i = 0; i < g.outputs.size(); ++i) {
      if (g.outputs[i].updates < 0) continue;
      updates_[std::size_t(g.regions[0].outputs[i])] = 1;
      updates_[std::size_t(g.input(g.outputs[i].updates))] |= 2;
    }
    order_groups();
    carry_sums();
    save_inputs();
    for (int i : order_) {
      if (carrier_[std::size_t(i)] < 0) lower(i);
    }
    finish();
  }

  constexpr const growing_plan& result() const { return plan_; }
  constexpr const text& fault() const { return fault_; }

 private:
  struct buffer {
    std::int64_t bytes{};
    bool persistent{};  ///< keeps its content from call to call
    bool constant{};    ///< always holds the same
    bool pinned{};      ///< a result: read after the last step
    int first = -1;
    int last = -1;
    std::int64_t offset{};
  };
  /// A value in memory in one layout.
  struct home {
    node_id value;
    layout arrangement;
    std::array<int, 2> border;
    buffer_ref at;  // space -2: offset is the index of an arena buffer
    int next;       // of the same value, or -1
  };
  static constexpr std::int32_t pending = -2;

  // ---- order

  constexpr node_id source(node_id n) const { return cut_.source(n); }

  /// The input that output value `n` replaces and that it may overwrite, or -1.
  constexpr std::int32_t replaced_input(node_id n) const {
    if (!(updates_[std::size_t(n)] & 1)) return -1;
    for (std::size_t i = 0; i < g.outputs.size(); ++i) {
      if (g.outputs[i].updates >= 0 && g.regions[0].outputs[i] == n && in_place_[i])
        return g.outputs[i].updates;
    }
    return -1;
  }

  /// Where the caller wants value `n`: in the place of an input, or in a bound result.
  constexpr buffer_ref destination(node_id n) const {
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

  /// An output may be the value that an input had before the call, while that input is replaced
  /// (`h` in `previous, h = h, next`): such a value is copied before anything is written.
  constexpr void save_inputs() {
    saved_.assign(g.outputs.size(), {});
    for (std::size_t i = 0; i < g.outputs.size(); ++i) {
      const node_id n = source(g.regions[0].outputs[i]);
      const node_id from = cut_.is_view(n) ? source(g.operand(n, 0)) : n;
      const bool replaced = updates_[std::size_t(from)] & 2;
      if (!replaced || (g.outputs[i].updates >= 0 && g.input(g.outputs[i].updates) == n)) continue;
      const bool bound = options_.results_bound && g.outputs[i].updates < 0;
      saved_[i] = bound ? bound_result(i) : fresh(bytes_of(n, layout::plain));
      emit_copy(n, locate(n, layout::plain), saved_[i]);
    }
  }

  /// Groups that read `n`, also through reshapes and broadcasts.
  template <class F>
  constexpr void for_each_reader(node_id n, F f) const {
    for (node_id u : cut_.users(n)) {
      const int o = cut_.owner[std::size_t(u)];
      if (o >= 0) f(o);
      if (cut_.is_alias(u) || cut_.is_view(u) || cut_.is_assembled(u)) for_each_reader(u, f);
    }
  }
  constexpr void order_groups() {
    in_place_.assign(g.outputs.size(), 0);
    std::vector<int> when;
    for (const group& s : cut_.groups) when.push_back(s.order * 2);
    for (std::size_t i = 0; i < g.outputs.size(); ++i) {
      const std::int32_t input = g.outputs[i].updates;
      const node_id value = g.regions[0].outputs[i];
      if (input < 0 || cut_.owner[std::size_t(value)] < 0) continue;
      const int writer = cut_.owner[std::size_t(value)];
      const step_kind kind = cut_.groups[std::size_t(writer)].kind;
      if (kind == step_kind::generic || kind == step_kind::control ||
          kind == step_kind::batch_norm || kind == step_kind::batch_norm_gradient)
        continue;
      // Readers of the old value come first; the writer may move behind them if nobody waits for
      // it.
      int last_reader = -1;
      for_each_reader(g.input(input), [&](int reader) {
        if (reader != writer) last_reader = std::max(last_reader, when[std::size_t(reader)]);
      });
      if (reads_old_value_elsewhere(writer, g.input(input))) continue;
      if (last_reader >= when[std::size_t(writer)]) {
        if (someone_waits(writer, last_reader, when)) continue;
        when[std::size_t(writer)] = last_reader + 1;
      }
      in_place_[i] = 1;
    }
    // Two writers may have moved behind each other: then one of them goes through a copy.
    for (std::size_t i = 0; i < g.outputs.size(); ++i) {
      if (!in_place_[i]) continue;
      const int writer = cut_.owner[std::size_t(g.regions[0].outputs[i])];
      for_each_reader(g.input(g.outputs[i].updates), [&](int reader) {
        if (reader != writer && when[std::size_t(reader)] >= when[std::size_t(writer)])
          in_place_[i] = 0;
      });
    }
    for (std::size_t i = 0; i < cut_.groups.size(); ++i) order_.push_back(int(i));
    std::sort(order_.begin(), order_.end(), [&](int a, int b) {
      return when[std::size_t(a)] != when[std::size_t(b)]
                 ? when[std::size_t(a)] < when[std::size_t(b)]
                 : a < b;
    });
  }
  /// The kernel reads the value that it overwrites other than at the element that it writes.
  constexpr bool reads_old_value_elsewhere(int writer, node_id input) const {
    const group& s = cut_.groups[std::size_t(writer)];
    for (node_id o : s.operands) {
      if (o >= 0 && source(o) == input) return true;
    }
    for (node_id m : s.members) {
      for (node_id o : g.operands(m)) {
        if (cut_.is_view(o) && source(g.operand(o, 0)) == input) return true;
      }
    }
    return false;
  }
  constexpr bool someone_waits(int writer, int until, const std::vector<int>& when) const {
    for (node_id m : cut_.groups[std::size_t(writer)].members) {
      bool waits = false;
      for_each_reader(m, [&](int reader) {
        waits |= reader != writer && when[std::size_t(reader)] <= until + 1;
      });
      if (waits) return true;
    }
    return false;
  }

  /// Bias gradients: a sum of pooled gradients over samples and pixels is yielded by the kernel
  /// that un-pools them, if all that becomes of it is written in place.
  constexpr void carry_sums() {
    carrier_.assign(cut_.groups.size(), -1);
    side_.assign(cut_.groups.size(), -1);
    if (arrangement_ != layout::lanes) return;
    for (std::size_t r = 0; r < cut_.groups.size(); ++r) {
      const group& s = cut_.groups[r];
      const node& sum = g.nodes[std::size_t(s.anchor)];
      if (s.kind != step_kind::reduce || s.arrangement != layout::lanes) continue;
      const node_id x = s.operands[0];
      const bool bias = g.type(x).rank() == 4 && sum.attributes.as<axes_options>().axes == 0b1101u;
      if (!bias || cut_.member(s, x) || !writes_in_place(s)) continue;
      for (std::size_t h = 0; h < cut_.groups.size(); ++h) {
        const group& host = cut_.groups[h];
        const bool unpools = host.kind == step_kind::convolution_pool_weight_gradient;
        const node_id pooled = unpools ? host.operands[1] : host.operands[0];
        if ((!unpools && host.kind != step_kind::unpool_corners) || side_[h] >= 0) continue;
        if (source(pooled) != source(x)) continue;
        carrier_[r] = int(h);
        side_[h] = int(r);
        break;
      }
    }
  }
  /// Every value of the group that is read outside it replaces an input.
  constexpr bool writes_in_place(const group& s) const {
    for (node_id m : s.members) {
      if (read_outside(s, m) && replaced_input(m) < 0) return false;
      for (node_id o : g.operands(m)) {
        const node_id from = source(cut_.is_view(o) ? g.operand(o, 0) : o);
        if (m != s.anchor && !cut_.member(s, o) && !cut_.is_constant(o) && !cut_.is_input(from))
          return false;
      }
    }
    return true;
  }

  // ---- memory

  constexpr buffer_ref fresh(std::int64_t bytes, bool persistent = false) {
    buffers_.push_back({bytes, persistent, false, false, -1, -1, 0});
    return {pending, std::int64_t(buffers_.size()) - 1};
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
      if (find(n, layout::lanes, {0, 0})) {
        plan_step s = conversion(step_kind::unpack, n, locate(n, layout::lanes), {0, 0});
        return emit_conversion(s, n, a, border);
      }
      if (find(n, layout::blocked, {0, 0})) {
        plan_step s = conversion(step_kind::unpack_blocks, n, locate(n, layout::blocked), {0, 0});
        return emit_conversion(s, n, a, border);
      }
      // A constant or a broadcast that some kernel wants in memory.
      plan_step s{.kind = step_kind::generic, .anchor = n, .accumulated = n};
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
  constexpr buffer_ref remember(node_id n, layout a, std::array<int, 2> border, buffer_ref at) {
    homes_.push_back({n, a, border, at, first_home_[std::size_t(n)]});
    first_home_[std::size_t(n)] = int(homes_.size()) - 1;
    return at;
  }
  /// samples, channels, height, width, border: what pack and its kin need.
  constexpr plan_step conversion(step_kind kind, node_id n, buffer_ref from,
                                 std::array<int, 2> border) const {
    const tensor_type t = g.type(n);
    plan_step s{.kind = kind, .anchor = n, .accumulated = n};
    s.in[0] = from;
    s.extents = {t[0], t.rank() > 1 ? t[1] : 1, 1, 1, border[0], border[1]};
    if (t.rank() == 4) {
      s.extents[2] = t[2];
      s.extents[3] = t[3];
    } else {
      s.extents[1] = t.shape.size(1, t.rank());
    }
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

  constexpr void emit_copy(node_id n, buffer_ref from, buffer_ref to) {
    plan_step s{.kind = step_kind::copy, .anchor = n, .accumulated = n};
    s.in[0] = from;
    s.output_count = 1;
    s.outputs[0] = {n, to};
    s.extents[0] = g.type(n).bytes();
    emit(s);
  }
  /// Values that depend on nothing (the basis of a Jacobian) are made once, if they are not large.
  /// The plan of a region has no call before which that could be done.
  constexpr bool is_constant(const plan_step& s) const {
    if (options_.results_bound || s.arrangement != layout::plain || s.carried || s.side >= 0)
      return false;
    if (s.kind != step_kind::generic && s.kind != step_kind::elementwise &&
        s.kind != step_kind::copy)
      return false;
    if (s.kind == step_kind::generic && is<print_op>(g.nodes[std::size_t(s.anchor)])) return false;
    bool constant = true;
    auto kept = [&](const buffer_ref& r, bool made) {
      if (r == buffer_ref{}) return;
      if (r.space != pending) {
        constant = false;
        return;
      }
      const buffer& b = buffers_[std::size_t(r.offset)];
      constant = constant && (made ? b.bytes <= most_constant_bytes && b.first < 0 : b.constant);
    };
    for (const auto& r : s.in) kept(r, false);
    for (int k = 0; k < s.read_count; ++k) kept(s.reads[std::size_t(k)].at, false);
    for (int k = 0; k < s.link_count; ++k) kept(plan_.links[std::size_t(s.first_link + k)], false);
    for (int k = 0; k < s.output_count; ++k) kept(s.outputs[std::size_t(k)].at, true);
    for (int k = 0; k < s.output_count; ++k) constant = constant && !s.outputs[std::size_t(k)].part;
    return constant && s.output_count > 0;
  }
  static constexpr std::int64_t most_constant_bytes = 1 << 18;

  constexpr void emit(plan_step s) {
    const int at = int(plan_.steps.size());
    s.constant = is_constant(s);
    for (int k = 0; s.constant && k < s.output_count; ++k) {
      buffer& b = buffers_[std::size_t(s.outputs[std::size_t(k)].at.offset)];
      b.persistent = b.constant = true;
    }
    auto touch = [&](const buffer_ref& r) {
      if (r.space != pending) return;
      buffer& b = buffers_[std::size_t(r.offset)];
      if (b.first < 0) b.first = at;
      b.last = at;
    };
    for (const auto& r : s.in) touch(r);
    touch(s.scratch);
    touch(s.corners);
    for (int k = 0; k < s.output_count; ++k) touch(s.outputs[std::size_t(k)].at);
    for (int k = 0; k < s.read_count; ++k) touch(s.reads[std::size_t(k)].at);
    for (int k = 0; k < s.link_count; ++k) touch(plan_.links[std::size_t(s.first_link + k)]);
    plan_.steps.push_back(s);
  }

  // ---- groups to steps

  constexpr void lower(int index, bool carried = false) {
    const int side = side_[std::size_t(index)];
    if (side >= 0) lower(side, true);
    const group& s = cut_.groups[std::size_t(index)];
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

  constexpr void operands(const group& s, plan_step& t) {
    const layout a = s.arrangement;
    auto& e = t.extents;
    switch (s.kind) {
      case step_kind::convolution:
      case step_kind::convolution_pool:
      case step_kind::convolution_input_gradient:
      case step_kind::convolution_weight_gradient:
      case step_kind::convolution_pool_weight_gradient: {
        const auto o = g.nodes[std::size_t(s.anchor)].attributes.as<convolution_options>();
        const bool weights = s.kind == step_kind::convolution_weight_gradient ||
                             s.kind == step_kind::convolution_pool_weight_gradient;
        const bool backward = s.kind == step_kind::convolution_input_gradient;
        const tensor_type image = g.type(backward ? s.anchor : s.operands[0]);
        const tensor_type filter = g.type(weights ? s.anchor : s.operands[1]);
        const auto& w = o.window;
        e = {image[0],  image[1],    image[2],    image[3],    filter[0],   filter[2],
             filter[3], w.stride[0], w.stride[1], w.before[0], w.before[1], 0};
        const std::array<int, 2> border{w.before[0], w.before[1]};
        if (a == layout::blocked) {
          blocked_convolution(s, t, image, filter);
        } else if (a == layout::lanes) {
          t.in[0] = backward ? locate(s.operands[0], a) : locate(s.operands[0], a, border);
          t.in[1] = locate(s.operands[1], weights ? layout::lanes : layout::plain);
          if (s.kind == step_kind::convolution_pool_weight_gradient)
            t.in[2] = locate(s.operands[2], a);
        } else {
          t.in[0] = locate(s.operands[0], layout::plain);
          t.in[1] = locate(s.operands[1], layout::plain);
          if (s.kind == step_kind::convolution_pool) {
            // A padded copy of one image, and the filters with their channels in the lanes.
            const std::int64_t size = std::int64_t(size_of(options_.element));
            const std::int64_t channels = align_up(filter[0], options_.lanes);
            t.scratch = fresh(image[1] * (image[2] + 2 * w.before[0]) *
                                  (image[3] + 2 * w.before[1]) * size +
                              64 * 4);
            t.in[3] = fresh(image[1] * std::int64_t{filter[2]} * filter[3] * channels * size, true);
          }
        }
        break;
      }
      case step_kind::product:
        if (a == layout::lanes) {
          const auto o = g.nodes[std::size_t(s.anchor)].attributes.as<matmul_op::options>();
          const tensor_type w = g.type(s.operands[1]);
          const bool rows_first = o.b[0] == o.result[1];
          t.in[0] = locate(s.operands[0], a);
          t.in[1] = locate(s.operands[1], layout::plain);
          // samples, rows, inner, row stride, inner stride
          e = {g.type(s.anchor)[0], g.type(s.anchor)[1], rows_first ? w[1] : w[0],
               rows_first ? w[1] : 1, rows_first ? 1 : w[1]};
        } else {
          t.in[0] = locate(s.operands[0], layout::plain);
          t.in[1] = locate(s.operands[1], layout::plain);
          if (const std::int64_t packed = packed_weights(s)) t.in[3] = fresh(packed, true);
        }
        break;
      case step_kind::product_weights:
        t.in[0] = locate(s.operands[0], layout::lanes);
        t.in[1] = locate(s.operands[1], layout::lanes);
        e = {g.type(s.operands[0])[0], g.type(s.operands[0])[1], g.type(s.operands[1])[1]};
        t.scratch = fresh((e[0] + options_.lanes - 1) / options_.lanes * options_.lanes *
                          align_up(e[2], options_.lanes) * std::int64_t(size_of(options_.element)));
        break;
      case step_kind::unpool_corners:
        t.in[0] = locate(s.operands[0], layout::lanes);
        t.in[1] = locate(s.operands[1], layout::lanes);
        e = {g.type(s.anchor)[0], g.type(s.anchor)[1], g.type(s.anchor)[2], g.type(s.anchor)[3]};
        break;
      case step_kind::max_pool:
        t.in[0] = locate(s.operands[0], layout::blocked);
        window_extents(s.anchor, g.type(s.operands[0]), g.result_type(s.anchor, 0), t);
        break;
      case step_kind::unpool:
        t.in[0] = locate(s.operands[0], layout::blocked);
        t.in[1] = locate(s.operands[1], layout::blocked);
        window_extents(s.anchor, g.type(s.anchor), g.type(s.operands[0]), t);
        break;
      case step_kind::batch_norm:
      case step_kind::batch_norm_gradient: {
        // image, gamma, beta or dy, statistics, and the gradients of gamma and beta
        const bool backward = s.kind == step_kind::batch_norm_gradient;
        const node_id image = s.operands[backward ? 1 : 0];
        const tensor_type x = g.type(image);
        t.in[0] = locate(image, a);
        t.in[1] = locate(s.operands[backward ? 2 : 1], layout::plain);
        t.in[2] = backward ? locate(s.operands[0], a) : locate(s.operands[2], layout::plain);
        for (int k = 1; k < 3; ++k) {
          const auto at = std::size_t(2 + k);
          if (backward) t.in[at] = locate(g.operand(s.anchor, 2 + k), layout::plain);
          t.in[backward ? at + 2 : at] = result(s.anchor, k);
        }
        e = {x[0], x[1], x.shape.size(2, x.rank())};
        break;
      }
      case step_kind::cross_entropy:
        t.in[0] = locate(s.operands[0], a);
        t.in[1] = locate(s.operands[1], layout::plain);
        e = {g.type(s.operands[0])[0], g.type(s.operands[0])[1]};
        if (a == layout::plain) t.scratch = fresh(e[0] * std::int64_t(size_of(options_.element)));
        break;
      case step_kind::attention:
      case step_kind::attention_gradient:
        attention_operands(s, t);
        break;
      case step_kind::control:
        link_operands(s, t);
        break;
      case step_kind::generic: {
        if (g.operands(s.anchor).size() > t.in.size()) {
          link_operands(s, t);
          break;
        }
        int k = 0;
        for (node_id o : g.operands(s.anchor)) t.in[std::size_t(k++)] = locate(o, layout::plain);
        break;
      }
      default:
        break;
    }
  }

  /// Of an image in blocks: samples, channels, extents, window, stride, padding, result.
  constexpr void window_extents(node_id n, const tensor_type& image, const tensor_type& pooled,
                                plan_step& t) const {
    const auto o = g.nodes[std::size_t(n)].attributes.as<pooling_options>();
    t.extents = {image[0],           image[1],           image[2],           image[3],
                 o.kernel[0],        o.kernel[1],        o.window.stride[0], o.window.stride[1],
                 o.window.before[0], o.window.before[1], pooled[2],          pooled[3]};
  }
  /// Packed filters, or sums of weight gradients, are `in[3]`; the padded copy of a plain image of
  /// few channels is the scratch.
  constexpr void blocked_convolution(const group& s, plan_step& t, const tensor_type& image,
                                     const tensor_type& filter) {
    const bool few = image[1] % options_.lanes != 0;
    const bool weights = s.kind == step_kind::convolution_weight_gradient;
    const bool backward = s.kind == step_kind::convolution_input_gradient;
    const std::int64_t size = std::int64_t(size_of(options_.element));
    t.in[0] = locate(s.operands[0], few && !backward ? layout::plain : layout::blocked);
    t.in[1] = locate(s.operands[1], weights ? layout::blocked : layout::plain);
    const bool kept = !weights && keeps_its_value(source(s.operands[1]));
    const int L = options_.lanes;
    const auto w = g.nodes[std::size_t(s.anchor)].attributes.as<convolution_options>().window;
    const bool minimal = !few && winograd::pays(image, filter, w);
    t.extents[11] = kept | (minimal ? 2 : 0);
    const std::int64_t elements =
        minimal ? winograd::filter_size(image[1] / L, filter[0] / L, L) : filter.size();
    t.in[3] = fresh(elements * size, kept);
    if (minimal && weights) {
      const int tiles =
          winograd::tiles(image[0], w.positions(image[2], 3, 0), w.positions(image[3], 3, 1));
      t.scratch =
          fresh(winograd::gradient_tiles_size(image[1] / L, filter[0] / L, tiles, L) * size);
    }
    if (few) {
      const tensor_type y = g.type(weights ? s.operands[1] : s.anchor);
      const std::int64_t rows = (y[2] - 1) * w.stride[0] + filter[2];
      const std::int64_t columns = (y[3] - 1) * w.stride[1] + filter[3];
      t.scratch =
          fresh((image[0] * image[1] * rows * columns + 16 * w.stride[1] + filter[3]) * size);
    }
  }
  constexpr void link_operands(const group& s, plan_step& t) {
    std::vector<buffer_ref> links;
    for (node_id o : g.operands(s.anchor)) links.push_back(locate(o, layout::plain));
    t.first_link = int(plan_.links.size());
    t.link_count = int(links.size());
    plan_.links.insert(plan_.links.end(), links.begin(), links.end());
  }

  /// Bytes of the right operand of a product in the kernel's own order, if it is worth packing once
  /// for many calls.
  constexpr std::int64_t packed_weights(const group& s) const {
    const product_form f = form_of_product(g, s.anchor);
    const std::int64_t size = std::int64_t(size_of(options_.element));
    if (!worth_packing(f, size) || !keeps_its_value(source(s.operands[f.exchanged ? 0 : 1])))
      return 0;
    const std::int64_t wide = 2 * options_.lanes;
    return (f.columns + wide - 1) / wide * wide * f.depth * size;
  }
  /// Whether node `n` has the same value in many calls: a parameter of a program that changes none,
  /// a constant of a loop.
  constexpr bool keeps_its_value(node_id n) const {
    const int i = input_at_[std::size_t(n)];
    if (i < 0) return false;
    if (options_.results_bound) return i >= options_.first_constant;
    for (const output_info& o : g.outputs) {
      if (o.updates >= 0) return false;
    }
    return g.inputs[std::size_t(i)].role == input_role::parameter;
  }

  /// Reads walk samples, heads and places.
  constexpr void attention_operands(const group& s, plan_step& t) {
    const attention_pattern& p = cut_.patterns[std::size_t(s.pattern)];
    const bool gradient = s.kind == step_kind::attention_gradient;
    const heads_walk& y = gradient ? p.query_gradient : p.result;
    t.extents = {p.batch, p.heads, p.queries, p.width, p.value_width, p.causal, y.batch, y.head,
                 y.place, p.keys,  0,         0};
    if (gradient)
      std::tie(t.extents[9], t.extents[10], t.extents[11]) =
          std::tuple(p.query_gradient.offset, p.key_gradient.offset, p.value_gradient.offset);
    std::array<heads_walk, 4> reads{p.query, p.key, p.value, p.cotangent};
    for (int k = 0; k < (gradient ? 4 : 3); ++k) {
      const heads_walk& w = reads[std::size_t(k)];
      t.reads[std::size_t(t.read_count++)] = {.value = w.value,
                                              .how = access::moving,
                                              .at = locate(w.value, layout::plain),
                                              .first = w.offset,
                                              .strides = {w.batch, w.head, w.place}};
    }
  }

  /// What the group's expressions read from memory, each value once.
  constexpr void leaves(const group& s, plan_step& t) {
    const bool loops = s.kind == step_kind::elementwise || s.kind == step_kind::reduce;
    if (loops) loop_domain(s, t);
    if (s.kind == step_kind::reduce && !cut_.member(s, s.operands[0]))
      read(s, t, s.operands[0], true);
    if (s.kind == step_kind::cross_entropy || s.kind == step_kind::generic ||
        s.kind == step_kind::control || s.pattern >= 0 || s.kind == step_kind::max_pool)
      return;
    for (node_id m : s.members) {
      if (m == s.anchor && s.kind != step_kind::elementwise) continue;
      if (!g.nodes[std::size_t(m)].op->pointwise || cut_.is_alias(m)) continue;
      const bool prologue = cut_.prologue(s, m);
      for (node_id o : g.operands(m)) {
        if (!cut_.member(s, o) && !cut_.is_constant(o))
          read(s, t, o, s.kind == step_kind::elementwise || prologue);
      }
    }
    if (loops) {
      parts(s, t);
      collapse(t);
    }
  }

  /// Outputs that are written to their place in a concatenation.
  constexpr void parts(const group& s, plan_step& t) {
    for (node_id m : s.members) {
      for (node_id c : cut_.users(m)) {
        if (!cut_.is_assembled(c)) continue;
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
  /// Where a concatenation is put together.
  constexpr buffer_ref assembled(node_id n) {
    if (const home* h = find(n, layout::plain, {0, 0})) return h->at;
    const buffer_ref at = destination(n);
    return remember(n, layout::plain, {0, 0}, at.valid() ? at : fresh(bytes_of(n, layout::plain)));
  }

  constexpr void loop_domain(const group& s, plan_step& t) const {
    const node_id n = s.kind == step_kind::reduce ? s.operands[0] : s.anchor;
    shape d = g.type(n).shape;
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
      // samples, whether the lanes are summed, too
      t.extents = {g.type(n)[0], t.folded & (s.arrangement == layout::lanes)};
    }
  }

  constexpr void read(const group& s, plan_step& t, node_id n, bool in_loops) {
    if (t.find_read(n) >= 0) return;
    operand_read l{.value = n};
    const bool lanes = s.arrangement == layout::lanes;
    const bool broadcast = cut_.is_broadcast(n);
    const bool part = in_loops && cut_.is_part(n);
    const node_id from = broadcast || part ? g.operand(n, 0) : n;
    const tensor_type t_from = g.type(from);
    if (in_loops && s.arrangement == layout::blocked) {
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
    if (t.read_count == int(t.reads.size())) {
      fault_ = text() << "a fused group reads more than " << t.reads.size() << " values";
      return;
    }
    t.reads[std::size_t(t.read_count++)] = l;
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

  /// Joins neighbouring loops through which every operand steps evenly, drops those of one turn.
  constexpr void collapse(plan_step& t) const {
    int n = 0;
    std::array<std::int64_t, max_loops> size{};
    std::array<std::array<std::int64_t, max_loops>, 17> stride{};
    std::array<std::array<std::int64_t, max_loops>, 10> out{};
    unsigned folded = 0;
    for (int d = 0; d < t.loops; ++d) {
      const auto i = std::size_t(d);
      if (t.loop[i] == 1 && !(d == t.loops - 1 && n == 0)) continue;
      const bool fold = t.folded >> d & 1;
      bool join = n > 0 && (folded >> (n - 1) & 1) == unsigned(fold);
      // In the lanes the outermost loop counts blocks of samples, whose fold differs from the rest.
      if (t.arrangement == layout::lanes && t.kind == step_kind::reduce && n == 1) join = false;
      for (int k = 0; join && k < t.read_count; ++k) {
        join = stride[std::size_t(k)][std::size_t(n - 1)] ==
               t.reads[std::size_t(k)].strides[i] * t.loop[i];
      }
      for (int k = 0; join && k < t.output_count; ++k) {
        join = out[std::size_t(k)][std::size_t(n - 1)] ==
               t.outputs[std::size_t(k)].strides[i] * t.loop[i];
      }
      const auto at = std::size_t(join ? n - 1 : n);
      size[at] = join ? size[at] * t.loop[i] : t.loop[i];
      for (int k = 0; k < t.read_count; ++k)
        stride[std::size_t(k)][at] = t.reads[std::size_t(k)].strides[i];
      for (int k = 0; k < t.output_count; ++k)
        out[std::size_t(k)][at] = t.outputs[std::size_t(k)].strides[i];
      if (!join) {
        if (fold) folded |= 1u << n;
        ++n;
      }
    }
    if (t.arrangement == layout::lanes && t.kind == step_kind::reduce && n == 1 && t.loop[0] > 1) {
      // The blocks of samples are never the innermost loop of a sum.
      size[1] = 1;
      folded |= folded << 1;
      n = 2;
    }
    t.loops = n;
    t.loop = size;
    t.folded = folded;
    for (int k = 0; k < t.output_count; ++k)
      t.outputs[std::size_t(k)].strides = out[std::size_t(k)];
    for (int k = 0; k < t.read_count; ++k) {
      operand_read& l = t.reads[std::size_t(k)];
      l.strides = stride[std::size_t(k)];
      if (l.how == access::moving && t.arrangement == layout::plain) {
        const std::int64_t by = l.strides[std::size_t(n - 1)];
        l.how = by == 0 ? access::fixed : by == 1 ? access::moving : access::strided;
      }
    }
  }

  /// Members that somebody outside the group reads are written to memory.
  constexpr void outputs(const group& s, plan_step& t) {
    auto put = [&](node_id n) {
      if (t.output_count == int(t.outputs.size())) {
        fault_ = text() << "a fused group writes more than " << t.outputs.size() << " values";
        return;
      }
      const node_id value = s.accumulated >= 0 ? s.accumulated : s.anchor;
      const bool lanes = s.arrangement == layout::lanes && cut_.batched[std::size_t(value)] &&
                         s.kind != step_kind::generic;
      const bool blocks = s.arrangement == layout::blocked && cut_.blocked[std::size_t(value)];
      const layout a = blocks ? layout::blocked : lanes ? layout::lanes : layout::plain;
      buffer_ref at = a == layout::plain || replaced_input(n) >= 0 ? destination(n) : buffer_ref{};
      if (!at.valid()) at = fresh(bytes_of(n, a));
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
    if (s.kind == step_kind::generic || s.kind == step_kind::control) {
      const node& x = g.nodes[std::size_t(s.anchor)];
      if (!x.result_count) {
        put(s.anchor);
        if (s.kind == step_kind::control) link_result(t, t.outputs[0].at);
        return;
      }
      for (int k = 0; k < x.result_count; ++k) {
        const buffer_ref at = result(s.anchor, k);
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
    if (s.corners >= 0) {
      // Four masks of 16 bits for each vector of pooled values.
      t.corners = fresh(bytes_of(s.accumulated, layout::lanes) /
                        (options_.lanes * std::int64_t(size_of(options_.element))) * 8);
      remember(s.corners, layout::lanes, {0, 0}, t.corners);
    }
    for (node_id m : s.members) {
      if (m == s.corners || cut_.is_alias(m)) continue;
      if (m == s.anchor && s.accumulated >= 0 && m != s.accumulated) continue;
      const node& x = g.nodes[std::size_t(m)];
      if (x.result_count || x.type.element == dtype::boolean) continue;
      if (x.op == &get_info_of && m != s.accumulated) continue;
      if (cut_.prologue(s, m)) continue;
      if (s.kind == step_kind::convolution_pool_weight_gradient && m != s.accumulated &&
          !x.op->pointwise)
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
  /// Makes a place for result `k` of node `n`.
  constexpr buffer_ref result(node_id n, int k) {
    const node_id first = cut_.get_of(n, k);
    buffer_ref at = first >= 0 && replaced_input(first) < 0 ? destination(first) : buffer_ref{};
    if (!at.valid()) at = fresh(g.result_type(n, k).bytes());
    for (node_id u : cut_.users(n)) {
      if (g.nodes[std::size_t(u)].attributes.as<get_attributes>().result == k)
        remember(u, layout::plain, {0, 0}, at);
    }
    return at;
  }
  constexpr bool read_outside(const group& s, node_id m) const {
    if (cut_.is_output(m)) return true;
    for (node_id u : cut_.users(m)) {
      if (cut_.member(s, u) && !cut_.is_alias(u)) continue;
      if (cut_.is_alias(u) ? read_outside(s, u) : !cut_.member(s, u)) return true;
    }
    return false;
  }

  /// Floating-point operations and bytes moved, for profiles and tables.
  constexpr void count(const group& s, plan_step& t) const {
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
    } else {
      t.flops = g.type(s.anchor).size() * std::int64_t(s.members.size());
    }
    for (node_id o : s.operands) {
      if (o >= 0) t.bytes += g.type(o).bytes();
    }
    for (int k = 0; k < t.read_count; ++k) t.bytes += g.type(t.reads[std::size_t(k)].value).bytes();
    for (int k = 0; k < t.output_count; ++k) {
      if (t.outputs[std::size_t(k)].value >= 0)
        t.bytes += g.type(t.outputs[std::size_t(k)].value).bytes();
    }
  }

  // ---- the end

  constexpr void finish() {
    for (std::size_t i = 0; i < g.outputs.size(); ++i) {
      const node_id n = g.regions[0].outputs[i];
      const std::int32_t input = g.outputs[i].updates;
      if (input >= 0 && in_place_[i]) continue;
      const buffer_ref at = saved_[i] != buffer_ref{} ? saved_[i] : locate(n, layout::plain);
      if (input < 0 && !options_.results_bound) {
        if (at.space == pending) buffers_[std::size_t(at.offset)].pinned = true;
        plan_.results.push_back({n, at});
        continue;
      }
      const buffer_ref to = input < 0 ? bound_result(i) : input_home(g.input(input));
      if (at != to) emit_copy(n, at, to);
    }
    std::vector<lifetime> lives;
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
      if (r.space == pending) r = {arena_space, lives[std::size_t(r.offset)].offset};
    };
    for (plan_step& s : plan_.steps) {
      for (auto& r : s.in) settle(r);
      settle(s.scratch);
      settle(s.corners);
      for (int k = 0; k < s.output_count; ++k) settle(s.outputs[std::size_t(k)].at);
      for (int k = 0; k < s.read_count; ++k) settle(s.reads[std::size_t(k)].at);
    }
    for (plan_value& r : plan_.results) settle(r.at);
    for (buffer_ref& r : plan_.links) settle(r);
  }

  const graph& g;
  plan_options options_;
  layout arrangement_;
  fuser cut_;
  input_offsets parameters_;
  input_offsets slots_;
  std::vector<int> input_at_;  ///< index of the input that a node is, or -1
  flags updates_;              ///< of a node: 1: it replaces an input, 2: it is replaced
  std::vector<int> order_;
  flags in_place_;
  std::vector<buffer_ref> saved_;  ///< for each output: the copy of an input's old value
  std::vector<int> carrier_;       ///< group whose kernel yields this sum, or -1
  std::vector<int> side_;          ///< the sum that this group yields, or -1
  std::vector<buffer> buffers_;
  std::vector<home> homes_;
  std::vector<int> first_home_;  ///< of each node, or -1
  growing_plan plan_;
  text fault_;
};

}  // namespace cella
