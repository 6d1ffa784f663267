// Operators that fold axes, and those along one axis.
#pragma once

#include <cella/interop/onnx/constants.hpp>
#include <cella/ops/cumulative.hpp>
#include <cella/ops/one_hot.hpp>
#include <cella/ops/prod.hpp>
#include <cella/ops/softmax.hpp>

namespace cella::interop {

using axes_function = var (*)(operand, const axis_list&, bool);

inline axis_list axes_in(const onnx_node& n, const std::vector<std::int64_t>& axes, int rank) {
  std::vector<int> all;
  for (std::int64_t a : axes) all.push_back(n.axis(a, rank));
  return axis_list(all);
}

/// Folds all axes if none are given, or none at all where the model says so.
template <axes_function F>
list<var> reduction_rule(onnx_node& n) {
  const var x = n.in(0);
  const auto axes = n.attribute_or_operand("axes", 1);
  // Of one number, and where no axis is folded, the sum of squares is a square, too.
  if (x.rank() == 0 || (axes.empty() && n.integer("noop_with_empty_axes", 0)))
    return {reshape(F(reshape(x, {x.shape().size(), 1}), {1}, false), x.shape())};
  return {F(x, axes_in(n, axes, x.rank()), n.integer("keepdims", 1) != 0)};
}
inline var sum_of_sizes(operand x, const axis_list& axes, bool keep) {
  return sum(abs(x), axes, keep);
}
inline var log_of_sum(operand x, const axis_list& axes, bool keep) {
  return log(sum(x, axes, keep));
}
inline var sum_of_squares(operand x, const axis_list& axes, bool keep) {
  return sum(square(x), axes, keep);
}

/// argmax or argmin, whose first axis is 0 unless given.
template <var (*F)(operand, int)>
list<var> position_rule(onnx_node& n) {
  const var x = n.in(0);
  const int axis = n.axis("axis", 0, x.rank());
  const bool last = n.integer("select_last_index", 0);
  var at = cast(F(last ? reverse(x, axis) : x, axis), dtype::i64);
  if (last) at = x.extent(axis) - 1 - at;
  return {n.integer("keepdims", 1) ? expand_dims(at, axis) : at};
}

/// softmax and its kin: before opset 13 over all axes from `axis` on, which was 1.
template <var (*F)(operand, int)>
list<var> along_rule(onnx_node& n) {
  const var x = n.in(0);
  if (n.opset() >= 13) return {F(x, n.axis("axis", -1, x.rank()))};
  const int axis = int(n.integer("axis", 1));
  const int first = axis < 0 ? axis + x.rank() : axis;
  if (first < 0 || first > x.rank()) n.refuse("names axis " + std::to_string(axis));
  const var flat = reshape(x, {x.shape().size(0, first), x.shape().size(first, x.rank())});
  return {reshape(F(flat, 1), x.shape())};
}
/// 1 at the first of the largest elements along the axis, 0 elsewhere.
inline var hardmax(operand x, int axis) {
  const var v = x.in(*x.owner());
  const var hot = one_hot(argmax(v, axis), v.extent(axis), v.element());
  return with_axis_moved(hot, v.rank() - 1, axis);
}
inline list<var> cumsum_rule(onnx_node& n) {
  const var x = n.in(0);
  return {cumsum(x, n.axis(n.integer(1), x.rank()), n.integer("reverse", 0) != 0,
                 n.integer("exclusive", 0) != 0)};
}

inline constexpr named_onnx_rule reduction_rules[] = {
    {"ArgMax", position_rule<argmax>},
    {"ArgMin", position_rule<argmin>},
    {"CumSum", cumsum_rule},
    {"Hardmax", along_rule<hardmax>},
    {"LogSoftmax", along_rule<log_softmax>},
    {"ReduceL1", reduction_rule<sum_of_sizes>},
    {"ReduceL2", reduction_rule<l2_norm>},
    {"ReduceLogSum", reduction_rule<log_of_sum>},
    {"ReduceLogSumExp", reduction_rule<logsumexp>},
    {"ReduceMax", reduction_rule<max>},
    {"ReduceMean", reduction_rule<mean>},
    {"ReduceMin", reduction_rule<min>},
    {"ReduceProd", reduction_rule<prod>},
    {"ReduceSum", reduction_rule<sum>},
    {"ReduceSumSquare", reduction_rule<sum_of_squares>},
    {"Softmax", along_rule<softmax>},
};

}  // namespace cella::interop
