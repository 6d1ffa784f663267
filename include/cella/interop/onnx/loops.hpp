// Loops of ONNX. Those whose steps are alike become loops of the graph. Those whose steps differ in
// more than their values are unrolled: a sequence grows in each, or the number of the step decides
// upon a shape.
#pragma once

#include <cella/interop/onnx/shapes.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/transform/control.hpp>

namespace cella::interop {

/// Whether a body hands on the condition that it gets, or one that always holds.
inline bool never_stops(const ::onnx::GraphProto& body) {
  std::string name = body.output(0).name();
  for (int k = body.node_size(); k-- > 0;) {
    const auto& x = body.node(k);
    if (x.output_size() < 1 || x.output(0) != name) continue;
    if (x.op_type() == "Identity" && x.input_size() == 1) {
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

/// A node `Loop` while it becomes operations. Its body takes the number of the step, whether the
/// loop goes on, and the state; it hands out whether it goes on, the next state, and slices.
class onnx_loop {
 public:
  explicit onnx_loop(onnx_node& n) : n_(n), body_(n.graph("body")) {
    for (int i = 2; i < n.input_count(); ++i) first_.push_back(n.value(i));
    if (body_.input_size() != int(first_.size()) + 2 ||
        body_.output_size() < int(first_.size()) + 1)
      n.refuse("has a body that takes or hands out another number of values");
    slices_ = std::size_t(body_.output_size()) - 1 - first_.size();
  }

  model_values results() {
    if (std::ranges::any_of(first_, is_no_tensor)) return unrolled();
    // Where a body hands out slices, the number of steps must be known.
    const bool counted = n_.has(0) && never_stops(body_) && (slices_ || n_.is_known(0));
    if (!counted || (n_.has(1) && !n_.integer(1)))
      return slices_ ? unrolled() : as_values(until_it_stops());
    const std::int64_t steps = n_.integer(0);
    if (steps > 1 << 30) n_.not_supported("a loop of " + std::to_string(steps) + " steps");
    return steps < 1 || steps_differ() ? unrolled() : as_values(scanned());
  }

 private:
  static bool is_no_tensor(const model_value& v) { return v.kind() != model_value::tensor; }
  var truth() const { return constant(n_.b(), 1, {dtype::boolean, {}}); }

  /// Condition, next state and slices of a step.
  model_values step(var number, var goes_on, const model_values& state) const {
    model_values in{number, goes_on};
    in.insert(in.end(), state.begin(), state.end());
    model_values out = n_.scope().trace(body_, in);
    if (is_no_tensor(out[0])) n_.refuse("has a body whose condition is " + out[0].what());
    return out;
  }
  model_values state_of(const model_values& out) const {
    return {out.begin() + 1, out.begin() + 1 + std::ptrdiff_t(first_.size())};
  }
  list<var> slices_of(const model_values& out) const {
    const model_values all(out.begin() + 1 + std::ptrdiff_t(first_.size()), out.end());
    if (std::ranges::any_of(all, is_no_tensor)) n_.refuse("has a body whose slices are no tensors");
    return parts_of(all);
  }

  /// Whether the first step asks for the value of what follows from its number, or makes a state of
  /// another form than it gets.
  bool steps_differ() const {
    bool grows = false;
    const bool asked = n_.scope().is_asked_for(
        [&](var number) { grows = !of_one_form(state_of(step(number, truth(), first_)), first_); });
    return asked || grows;
  }
  model_values unrolled() const {
    const std::int64_t limit = n_.has(0) ? n_.integer(0) : std::numeric_limits<std::int64_t>::max();
    if (n_.has(1)) (void)n_.integer(1);  // says which input must be known
    var goes_on = n_.has(1) ? n_.in(1) : truth();
    model_values state = first_;
    std::vector<list<var>> slices(slices_);
    for (std::int64_t i = 0; i < limit; ++i) {
      const tensor_ref* const known = n_.scope().known(goes_on);
      if (!known || known->type.size() != 1)
        n_.not_supported("sequences or slices of a loop whose number of steps is not known");
      if (read_number<double>(*known, 0) == 0) break;
      const model_values out = step(integers_as_constant(n_.b(), {i}, {}), goes_on, state);
      goes_on = out[0].parts()[0];
      state = state_of(out);
      const list<var> own = slices_of(out);
      for (std::size_t k = 0; k < slices_; ++k) slices[k].push_back(own[k]);
    }
    for (const list<var>& all : slices) {
      if (all.empty()) n_.not_supported("slices of a loop of 0 steps");
      state.push_back(stack(span<const var>(all.data(), all.size()), 0));
    }
    return state;
  }
  list<var> scanned() const {
    const var always = truth();
    auto once = [&](const list<var>& state, var i) -> std::pair<list<var>, list<var>> {
      const model_values out = step(i, always, as_values(state));
      return {parts_of(state_of(out)), slices_of(out)};
    };
    const var counts = iota(n_.b(), {dtype::i64, {n_.integer(0)}}, 0);
    if (first_.empty()) {
      // A loop has a state, if only one that nothing reads.
      const auto [state, ys] =
          scan([&](var unused, var i) { return std::pair(unused, once({}, i).second); },
               constant(n_.b(), 0, {dtype::i64, {}}), counts);
      return ys;
    }
    const auto [state, ys] = scan(once, parts_of(first_), counts);
    return joined(state, ys);
  }
  list<var> until_it_stops() const {
    const list<var> first{constant(n_.b(), 0, {dtype::i64, {}}),
                          n_.has(1) ? reshape(n_.in(1), shape{}) : truth()};
    const var limit = n_.has(0) ? reshape(n_.in(0), shape{}) : var{};
    const list<var> last = while_loop(
        [&](const list<var>& s) { return limit.b ? logical_and(s[1], less(s[0], limit)) : s[1]; },
        [&](const list<var>& s) -> list<var> {
          return joined({s[0] + 1}, n_.traced_tensors(body_, as_values(s)));
        },
        joined(first, parts_of(first_)));
    return {last.begin() + 2, last.end()};
  }

  onnx_node& n_;
  const ::onnx::GraphProto& body_;
  model_values first_;
  std::size_t slices_{};
};
inline model_values loop_rule(onnx_node& n) { return onnx_loop(n).results(); }

inline constexpr named_onnx_rule loop_rules[] = {{"Loop", loop_rule}};

}  // namespace cella::interop
