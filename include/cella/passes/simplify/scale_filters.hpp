// Folds what scales and shifts the channels of a convolution - batch norm by running statistics -
// into its filters and one bias, in programs that change no parameter: there the new filters are
// made once (plan_places.hpp), and each call saves the work.
#pragma once

#include <cella/ops/convolution.hpp>
#include <cella/ops/elementwise.hpp>
#include <cella/passes/rewriting/move_first.hpp>
#include <cella/passes/rewriting/rewrite.hpp>

namespace cella {

namespace detail {

/// One number for each channel of an image.
struct channel_values {
  node_id vector = no_node;  ///< [C]
  bool negative{};
};

/// An input that a program without updates finds the same in every call.
constexpr bool is_parameter(const graph& g, node_id n) {
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    if (g.input(int(i)) == n) return owned_by_cell(g.inputs[i].role);
  }
  return false;
}
constexpr bool is_given(const node& x) { return is<constant_op>(x) || is<values_op>(x); }
/// Operations that turn parameters into filters, scales and biases.
constexpr bool makes_constants(const node& x) {
  return x.op->pointwise || is<broadcast_op>(x) || is<reshape_op>(x);
}
/// Moves vectors and numbers that follow from parameters to the front of the main region: kernels
/// whose epilogues read them come later. Filters stay: all at once they would take too much memory.
constexpr void parameters_first(graph& g) {
  flags known(g.nodes.size(), 0);
  for (node_id n : g.regions[0].nodes) {
    const node& x = g.nodes[std::size_t(n)];
    bool all = x.op == &input_info_of ? is_parameter(g, n)
                                      : x.type.rank() <= 1 && (is_given(x) || makes_constants(x));
    for (node_id o : g.operands(n)) all = all && known[std::size_t(o)];
    known[std::size_t(n)] = all;
  }
  move_first(g, known);
}

/// Puts `filter s` in the place of `(filter ...) s`, and one sum in the place of two.
class filter_scaler {
 public:
  constexpr explicit filter_scaler(rewriter& r) : r_(r) {}

  constexpr node_id visit(node_id n) {
    if (r_.is<mul_op>(n)) return scaled(n);
    if (r_.is<add_op>(n) || r_.is<sub_op>(n)) return joined(n);
    return no_node;
  }

 private:
  /// (conv(x, w) +- b) s = conv(x, w s) +- b s
  constexpr node_id scaled(node_id n) {
    for (int k = 0; k < 2; ++k) {
      const node_id v = r_.operand(n, k), s = repeated(r_.operand(n, 1 - k));
      if (s < 0 || !r_.has_one_user(v)) continue;
      channel_values shift;
      const node_id c = convolution_below(v, shift);
      if (c < 0) continue;
      const node_id w = r_.operand(c, 1);
      if (!keeps_its_value(w) || !keeps_its_value(s)) continue;
      const node_id scale = r_.emit<broadcast_op>({s}, along(r_.shape_of(w), 0));
      const node_id scaled_filter = r_.emit<mul_op>({w, scale});
      const node_id y =
          r_.emit<convolution_op>({r_.operand(c, 0), scaled_filter}, r_.as<convolution_options>(c));
      if (shift.vector < 0) return y;
      shift.vector = r_.emit<mul_op>({shift.vector, s});
      return shifted(y, shift);
    }
    return no_node;
  }
  /// (conv(x, w) +- b) +- c = conv(x, w) + (c +- b)
  constexpr node_id joined(node_id n) {
    for (int k = 0; k < 2; ++k) {
      const bool minus = r_.is<sub_op>(n);
      if (k == 1 && minus) break;
      const node_id v = r_.operand(n, k), c = repeated(r_.operand(n, 1 - k));
      if (c < 0 || !keeps_its_value(c) || !r_.has_one_user(v)) continue;
      channel_values shift;
      const node_id y = convolution_below(v, shift);
      if (y < 0 || shift.vector < 0 || !keeps_its_value(shift.vector)) continue;
      if (shift.negative && minus) return shifted(y, {r_.emit<add_op>({shift.vector, c}), true});
      if (shift.negative) return shifted(y, {r_.emit<sub_op>({c, shift.vector}), false});
      if (minus) return shifted(y, {r_.emit<sub_op>({shift.vector, c}), false});
      return shifted(y, {r_.emit<add_op>({shift.vector, c}), false});
    }
    return no_node;
  }

  /// The convolution that v is, but for a shift of its channels that nobody else reads.
  constexpr node_id convolution_below(node_id v, channel_values& shift) const {
    if (r_.is<convolution_op>(v)) return v;
    if (!r_.is<add_op>(v) && !r_.is<sub_op>(v)) return no_node;
    for (int k = 0; k < 2; ++k) {
      if (k == 1 && r_.is<sub_op>(v)) break;
      const node_id c = r_.operand(v, k);
      if (!r_.is<convolution_op>(c) || !r_.has_one_user(c)) continue;
      shift = {repeated(r_.operand(v, 1 - k)), r_.is<sub_op>(v)};
      if (shift.vector >= 0 && keeps_its_value(shift.vector)) return c;
    }
    return no_node;
  }
  constexpr node_id shifted(node_id y, const channel_values& shift) {
    const node_id b = r_.emit<broadcast_op>({shift.vector}, along(r_.shape_of(y), 1));
    return shift.negative ? r_.emit<sub_op>({y, b}) : r_.emit<add_op>({y, b});
  }
  static constexpr broadcast_op::options along(const shape& s, int axis) {
    broadcast_op::options o{s, iteration_space::no_axes};
    o.axes[0] = std::int8_t(axis);
    return o;
  }
  /// The vector [C] that n repeats along all axes of an image but the channels; else no_node.
  constexpr node_id repeated(node_id n) const {
    if (!r_.is<broadcast_op>(n)) return no_node;
    const node_id v = r_.operand(n, 0);
    return r_.shape_of(v).rank == 1 && r_.shape_of(n).rank == 4 &&
                   r_.as<broadcast_op::options>(n).axes[0] == 1
               ? v
               : no_node;
  }
  /// Whether n follows from parameters, states and constants only, by a few operations.
  constexpr bool keeps_its_value(node_id n, int depth = 0) const {
    const graph& g = r_.g();
    const node& x = g.nodes[std::size_t(n)];
    if (x.op == &input_info_of) return is_parameter(g, n);
    if (is_given(x)) return true;
    if (!makes_constants(x) || depth == 8) return false;
    for (node_id o : g.operands(n)) {
      if (!keeps_its_value(o, depth + 1)) return false;
    }
    return true;
  }

  rewriter& r_;
};

}  // namespace detail

/// The graph with its convolutions' filters scaled, if nothing that it computes takes the place of
/// an input.
constexpr graph scale_filters(graph g) {
  if (g.changes_inputs()) return g;
  bool convolves = false;
  for (node_id n : g.regions[0].nodes) convolves |= is<convolution_op>(g.nodes[std::size_t(n)]);
  if (!convolves) return g;
  constexpr rule_table none{span<const rule>()};
  rewriter r(g, none);
  r.count_users();
  detail::filter_scaler scaler(r);
  r.sweep([&](node_id n) { return scaler.visit(n); });
  detail::parameters_first(g);
  return g;
}

}  // namespace cella
