// Branches and scans.
#pragma once

#include <cella/interop/onnx/shapes.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/transform/vmap.hpp>

namespace cella::interop {

inline model_values if_rule(onnx_node& n) {
  const var condition = reshape(n.in(0), shape{});
  const auto &then = n.graph("then_branch"), &otherwise = n.graph("else_branch");
  if (n.is_known(0)) return n.scope().trace(n.integer(0) ? then : otherwise, {});
  model_values yes, no;
  if (n.scope().is_on_trial()) {
    // A loop of which this is the first step is unrolled if its condition decides upon a form.
    n.scope().is_asked_for(
        [&](var) { yes = n.scope().trace(then, {}), no = n.scope().trace(otherwise, {}); });
    if (!of_one_form(yes, no)) return n.scope().trace(n.integer(0) ? then : otherwise, {});
  }
  const list<var> all = cond(
      condition, [&] { return parts_of(yes = n.scope().trace(then, {})); },
      [&] {
        no = n.scope().trace(otherwise, {});
        // Which of two forms the result has must be known: this says which input decides.
        if (!of_one_form(yes, no)) (void)n.integer(0);
        return parts_of(no);
      });
  return with_parts(yes, all);
}

/// How a node `Scan` goes over its inputs: one direction and axis for each, or none for all.
class scan_form {
 public:
  using integers = std::vector<std::int64_t>;

  scan_form(onnx_node& n, std::size_t inputs) : n_(n), body_(n.graph("body")) {
    const auto scanned = std::size_t(n.integer("num_scan_inputs", 1));
    if (scanned < 1 || scanned > inputs) n.refuse("has a wrong number of scan inputs");
    carries_ = inputs - scanned;
    if (body_.output_size() < int(carries_)) n.refuse("has a body that hands out too few values");
    const auto made = std::size_t(body_.output_size()) - carries_;
    const bool old = n.opset() < 9;
    backwards_ = fitting(old ? "directions" : "scan_input_directions", scanned);
    if (old) return;
    axes_ = fitting("scan_input_axes", scanned);
    backwards_out_ = fitting("scan_output_directions", made);
    axes_out_ = fitting("scan_output_axes", made);
  }

  list<var> operator()(const list<var>& in) const {
    list<var> xs;
    for (std::size_t k = 0; carries_ + k < in.size(); ++k) {
      var x = in[carries_ + k];
      x = with_axis_moved(x, axes_.empty() ? 0 : n_.axis(axes_[k], x.rank()), 0);
      xs.push_back(!backwards_.empty() && backwards_[k] ? reverse(x, 0) : x);
    }
    auto step = [&](const list<var>& state, const list<var>& x) -> std::pair<list<var>, list<var>> {
      const list<var> out = n_.traced_tensors(body_, as_values(joined(state, x)));
      return {{out.begin(), out.begin() + carries_}, {out.begin() + carries_, out.end()}};
    };
    auto [results, ys] = scan(step, list<var>(in.begin(), in.begin() + carries_), xs);
    for (std::size_t k = 0; k < ys.size(); ++k) {
      if (!backwards_out_.empty() && backwards_out_[k]) ys[k] = reverse(ys[k], 0);
      const int axis = axes_out_.empty() ? 0 : n_.axis(axes_out_[k], ys[k].rank());
      results.push_back(with_axis_moved(ys[k], 0, axis));
    }
    return results;
  }

 private:
  integers fitting(const char* name, std::size_t count) const {
    const integers all = n_.integers(name);
    if (!all.empty() && all.size() != count)
      n_.refuse("has not one direction or axis for each scan");
    return all;
  }

  onnx_node& n_;
  const ::onnx::GraphProto& body_;
  std::size_t carries_{};
  integers backwards_, axes_, backwards_out_, axes_out_;
};
inline list<var> scan_rule(onnx_node& n) {
  if (n.opset() >= 9) {
    const list<var> in = n.inputs();
    return scan_form(n, in.size())(in);
  }
  // All tensors have the batch as their leading axis, and its samples may have their own lengths.
  if (n.has(0)) n.not_supported("a scan over samples of different lengths");
  list<var> in;
  for (int i = 1; i < n.input_count(); ++i) in.push_back(n.in(i, 1));
  return vmap(scan_form(n, in.size()))(in);
}

inline constexpr named_onnx_rule control_rules[] = {
    {"If", if_rule},
    {"Scan", scan_rule},
};

}  // namespace cella::interop
