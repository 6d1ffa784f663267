// Branches and loops.
#pragma once

#include <cella/interop/onnx/shapes.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/transform/control.hpp>

namespace cella::interop {

inline list<var> if_rule(onnx_node& n) {
  const var condition = reshape(n.in(0), shape{});
  if (n.is_known(0))
    return n.scope().trace(n.graph(n.integer(0) ? "then_branch" : "else_branch"), {});
  auto branch = [&](const char* name) {
    return [&n, name] { return n.scope().trace(n.graph(name), {}); };
  };
  return cond(condition, branch("then_branch"), branch("else_branch"));
}
inline list<var> part_of(const list<var>& all, std::size_t first, std::size_t last) {
  list<var> some;
  for (std::size_t i = first; i < last; ++i) some.push_back(all[i]);
  return some;
}
inline list<var> joined(list<var> a, const list<var>& b) {
  for (const var& x : b) a.push_back(x);
  return a;
}
/// Whether a body hands on the condition that it gets, or one that always holds.
inline bool never_stops(const ::onnx::GraphProto& body) {
  std::string name = body.output(0).name();
  for (int k = body.node_size(); k-- > 0;) {
    const auto& x = body.node(k);
    if (x.output_size() < 1 || x.output(0) != name) continue;
    if (x.op_type() == "Identity") {
      name = x.input(0);
    } else if (x.op_type() == "Constant" && x.attribute_size() == 1 && x.attribute(0).has_t()) {
      const auto& t = x.attribute(0).t();
      return t.raw_data() == std::string(1, '\1') || (t.int32_data_size() == 1 && t.int32_data(0));
    } else {
      return false;
    }
  }
  return name == body.input(1).name();
}
/// Loops of a known number of steps, whose bodies may hand out a slice in each; and loops that a
/// condition ends, whose bodies hand out none.
inline list<var> loop_rule(onnx_node& n) {
  const auto& body = n.graph("body");
  list<var> carried;
  for (int i = 2; i < n.input_count(); ++i) carried.push_back(n.in(i));
  if (body.input_size() != int(carried.size()) + 2 || body.output_size() < int(carried.size()) + 1)
    n.refuse("has a body that takes or hands out another number of values");
  const std::size_t slices = std::size_t(body.output_size()) - 1 - carried.size();
  // Where a body hands out slices, the number of steps must be known.
  const bool counted = n.has(0) && never_stops(body) && (slices || n.is_known(0));
  if (counted && (!n.has(1) || n.integer(1))) {
    const std::int64_t steps = n.integer(0);
    if (steps < 1 || steps > 1 << 30)
      n.not_supported("a loop of " + std::to_string(steps) + " steps");
    const var counts = iota(n.b(), {dtype::i64, {steps}}, 0);
    const var truth = constant(n.b(), 1, {dtype::boolean, {}});
    auto step = [&](list<var> state, var i) -> std::pair<list<var>, list<var>> {
      const list<var> in = joined({i, truth}, state);
      const list<var> out = n.scope().trace(body, span<const var>(in.data(), in.size()));
      return {part_of(out, 1, 1 + state.size()), part_of(out, 1 + state.size(), out.size())};
    };
    if (carried.empty()) {
      // A loop has a state, if only one that nothing reads.
      const auto [state, ys] =
          scan([&](var unused, var i) { return std::pair(unused, step({}, i).second); },
               constant(n.b(), 0, {dtype::i64, {}}), counts);
      return ys;
    }
    const auto [state, ys] = scan(step, carried, counts);
    return joined(state, ys);
  }
  if (slices) n.not_supported("slices of a loop whose number of steps is not known");
  const var first = constant(n.b(), 0, {dtype::i64, {}});
  const var truth = n.has(1) ? reshape(n.in(1), shape{}) : constant(n.b(), 1, {dtype::boolean, {}});
  const var limit = n.has(0) ? reshape(n.in(0), shape{}) : var{};
  const list<var> state = while_loop(
      [&](const list<var>& s) { return limit.b ? logical_and(s[1], less(s[0], limit)) : s[1]; },
      [&](const list<var>& s) -> list<var> {
        list<var> next{s[0] + 1};
        for (const var& x : n.scope().trace(body, span<const var>(s.data(), s.size())))
          next.push_back(x);
        return next;
      },
      joined({first, truth}, carried));
  return part_of(state, 2, state.size());
}
inline list<var> scan_rule(onnx_node& n) {
  if (n.opset() < 9) n.not_supported("a scan of opset 8");
  const auto& body = n.graph("body");
  const auto xs_count = std::size_t(n.integer("num_scan_inputs", 1));
  const list<var> in = n.inputs();
  if (xs_count < 1 || xs_count > in.size()) n.refuse("has a wrong number of scan inputs");
  const std::size_t carries = in.size() - xs_count;
  const auto backwards = n.integers("scan_input_directions");
  const auto axes = n.integers("scan_input_axes"), out_axes = n.integers("scan_output_axes");
  const auto out_backwards = n.integers("scan_output_directions");
  auto fits = [&](const std::vector<std::int64_t>& all, std::size_t count) {
    if (!all.empty() && all.size() != count)
      n.refuse("has not one direction or axis for each scan");
  };
  if (body.output_size() < int(carries)) n.refuse("has a body that hands out too few values");
  const auto ys_count = std::size_t(body.output_size()) - carries;
  fits(backwards, xs_count), fits(axes, xs_count);
  fits(out_backwards, ys_count), fits(out_axes, ys_count);
  list<var> xs;
  for (std::size_t k = 0; k < xs_count; ++k) {
    var x = in[carries + k];
    const int axis = axes.empty() ? 0 : n.axis(axes[k], x.rank());
    x = with_axis_moved(x, axis, 0);
    xs.push_back(!backwards.empty() && backwards[k] ? reverse(x, 0) : x);
  }
  auto step = [&](list<var> state, list<var> x) -> std::pair<list<var>, list<var>> {
    const list<var> all = joined(state, x);
    const list<var> out = n.scope().trace(body, span<const var>(all.data(), all.size()));
    return {part_of(out, 0, carries), part_of(out, carries, out.size())};
  };
  auto [state, ys] = scan(step, part_of(in, 0, carries), xs);
  for (std::size_t k = 0; k < ys.size(); ++k) {
    if (!out_backwards.empty() && out_backwards[k]) ys[k] = reverse(ys[k], 0);
    const int axis = out_axes.empty() ? 0 : n.axis(out_axes[k], ys[k].rank());
    ys[k] = with_axis_moved(ys[k], 0, axis);
  }
  return joined(state, ys);
}

inline constexpr named_onnx_rule control_rules[] = {
    {"If", if_rule},
    {"Loop", loop_rule},
    {"Scan", scan_rule},
};

}  // namespace cella::interop
