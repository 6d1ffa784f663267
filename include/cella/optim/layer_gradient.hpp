// How the graph makes the gradient of a layer's weight: from the layer's input and from the
// gradient of what it yields. Rules that want more than the gradient find both here.
#pragma once

#include <cella/ops/array.hpp>
#include <cella/ops/convolution.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/optim/update.hpp>

namespace cella::optim::detail {

/// The gradient of a weight: the sum, over rows of x or places of images, of dy x^T, [Out, In].
/// Filters are [Out, C KH KW], and their x is each patch of the image.
struct layer_gradient {
  static constexpr std::size_t none = ~std::size_t{0};

  builder* b{};
  std::size_t weight = none, bias = none;  ///< indices in the list of gradients
  node_id made = no_node;                  ///< the product, or the filter's gradient
  ids moves;        ///< reshapes and transposes from there to the weight's shape, the last first
  list<int> order;  ///< the axes of `made`: those of dy's outputs, then those of x's
  node_id x = no_node, dy = no_node;
  unsigned summed_x{}, summed_dy{};  ///< axes of a dense layer's x and dy that are no matrix's
  bool is_filter{};
  int outputs = 1, inputs = 1;  ///< without the bias

  /// What has the weight's shape as a matrix [Out, In], and back.
  constexpr var matrix(var v) const {
    for (node_id m : moves) {
      const node& n = b->g.nodes[std::size_t(m)];
      if (is<reshape_op>(n))
        v = reshape(v, b->g.type(b->g.operand(m, 0)).shape);
      else
        v = permuted(v, inverse(permutation(n, v.rank())));
    }
    return reshape(permuted(v, order), {outputs, inputs});
  }
  constexpr var like_weight(var m) const {
    shape s;
    for (int d : order) s.push_back(b->g.type(made).shape[d]);
    var v = permuted(reshape(m, s), inverse(order));
    for (std::size_t k = moves.size(); k-- > 0;) {
      const node& n = b->g.nodes[std::size_t(moves[k])];
      if (is<reshape_op>(n))
        v = reshape(v, b->g.type(moves[k]).shape);
      else
        v = permuted(v, permutation(n, v.rank()));
    }
    return v;
  }

  /// Samples, over which a loss is a mean: rows of x, or images.
  constexpr double samples() const { return is_filter ? double(input().extent(0)) : rows(); }
  /// Sums of dy x^T: rows of x, or places of the filter.
  constexpr double rows() const {
    const var y{b, dy};
    if (is_filter) return double(y.shape().size()) / outputs;
    double n = 1;
    for (int d = 0; d < y.rank(); ++d) n *= summed_dy >> d & 1 ? y.extent(d) : 1;
    return n;
  }
  constexpr var input() const { return {b, x}; }

  /// Sums over rows: of x x^T [In, In] and x [In], of dy dy^T [Out, Out].
  struct moments {
    var inputs, input, outputs;
  };
  constexpr moments in(dtype element) const {
    const var u = cast(input(), element), v = cast(var{b, dy}, element);
    if (!is_filter)
      return {squared(u, summed_x, inputs), reshape(added_up(u, summed_x), {inputs}),
              squared(v, summed_dy, outputs)};
    const var p = patches(u);
    // Filter gradients are sums of this kind, in whatever form the back end keeps images.
    const shape filter = b->g.type(made).shape;
    const auto walk = node_ref{b, made}.as<convolution_options>().window;
    const auto squares = [&](const window& w, var image, var d, std::array<std::int32_t, 2> taps,
                             int n) {
      return reshape(emit<convolution_weight_gradient_op>(
                         convolution_options{w, taps}, std::source_location::current(), image, d),
                     {n, n});
    };
    return {squares(walk, u, p, {filter[2], filter[3]}, inputs), sum(p, {0, 2, 3}),
            squares({}, v, v, {1, 1}, outputs)};
  }

 private:
  static constexpr list<int> permutation(const node& n, int rank) {
    const auto p = n.attributes.as<transpose_op::options>().permutation;
    list<int> all;
    for (int d = 0; d < rank; ++d) all.push_back(p[std::size_t(d)]);
    return all;
  }
  static constexpr list<int> inverse(const list<int>& p) {
    list<int> q(p.size());
    for (std::size_t d = 0; d < p.size(); ++d) q[std::size_t(p[d])] = int(d);
    return q;
  }
  static constexpr var permuted(var v, const list<int>& p) {
    bool moves = false;
    for (std::size_t d = 0; d < p.size(); ++d) moves |= p[d] != int(d);
    return moves ? transpose(v, axis_list(span<const int>(p))) : v;
  }
  static constexpr list<int> axes_of(unsigned mask) {
    list<int> axes;
    for (int d = 0; mask >> d; ++d) {
      if (mask >> d & 1) axes.push_back(d);
    }
    return axes;
  }
  static constexpr var squared(var v, unsigned summed, int n) {
    const list<int> axes = axes_of(summed);
    const axis_list a{span<const int>(axes)};
    return reshape(tensor_dot(v, v, a, a), {n, n});
  }
  static constexpr var added_up(var v, unsigned summed) {
    const list<int> axes = axes_of(summed);
    return axes.empty() ? v : sum(v, axis_list(span<const int>(axes)));
  }
  /// [N,C,H,W] -> [N, C KH KW, OH, OW]: what the filter sees at each place, which filters of one 1
  /// each yield, whatever the stride, padding and dilation.
  constexpr var patches(var image) const {
    const shape filter = b->g.type(made).shape;
    const int channels = filter[1], taps = filter[2] * filter[3];
    const var place = iota(*b, {dtype::i32, {channels, taps, taps}}, 1);
    const var tap = iota(*b, {dtype::i32, {channels, taps, taps}}, 2);
    const var ones = cast(equal(place, tap), image.element());
    auto walk = node_ref{b, made}.as<convolution_options>().window;
    walk.groups = channels;
    return conv2d(image, reshape(ones, {inputs, 1, filter[2], filter[3]}), walk);
  }
};

/// The node behind those that only convert.
constexpr node_id behind_casts(const graph& g, node_id n) {
  while (is<cast_op>(g.nodes[std::size_t(n)]) || is<identity_op>(g.nodes[std::size_t(n)]))
    n = g.operand(n, 0);
  return n;
}

/// The gradient of a weight, without its bias; `made` is no_node if it is none of such a layer.
constexpr layer_gradient weight_gradient_of(builder& b, std::size_t index, node_id gradient) {
  const graph& g = b.g;
  layer_gradient l;
  l.b = &b;
  l.weight = index;
  node_id n = behind_casts(g, gradient);
  while (is<reshape_op>(g.nodes[std::size_t(n)]) || is<transpose_op>(g.nodes[std::size_t(n)])) {
    l.moves.push_back(n);
    n = behind_casts(g, g.operand(n, 0));
  }
  const node& made = g.nodes[std::size_t(n)];
  if (is<convolution_weight_gradient_op>(made)) {
    l.x = g.operand(n, 0);
    l.dy = g.operand(n, 1);
    l.is_filter = true;
    const shape s = made.type.shape;
    for (int d = 0; d < 4; ++d) l.order.push_back(d);
    l.outputs = s[0];
    l.inputs = s[1] * s[2] * s[3];
    // A transposed convolution has its input in the place of dy.
    if (l.x < l.dy) l.made = n;
    return l;
  }
  if (!is<matmul_op>(made) || !is_floating(made.type.element)) return l;
  // What is differentiated was there before the gradients.
  const int y = g.operand(n, 0) > g.operand(n, 1) ? 0 : 1;
  l.dy = g.operand(n, y);
  l.x = g.operand(n, 1 - y);
  const auto o = made.attributes.as<matmul_op::options>();
  const auto axis_of = [](const iteration_space::axes& axes, std::int8_t factor) {
    for (int d = 0; d < max_rank; ++d) {
      if (axes[std::size_t(d)] == factor) return d;
    }
    return -1;
  };
  for (const bool is_dy : {true, false}) {
    const auto& own = (is_dy == (y == 0)) ? o.a : o.b;
    const auto& other = (is_dy == (y == 0)) ? o.b : o.a;
    const shape s = g.type(is_dy ? l.dy : l.x).shape;
    for (int d = 0; d < s.rank; ++d) {
      const std::int8_t factor = own[std::size_t(d)];
      const int kept = axis_of(o.result, factor);
      // Each factor is one of both operands that is summed, or of one of them that is not.
      if ((kept < 0) != (axis_of(other, factor) >= 0)) return l;
      if (kept < 0) {
        (is_dy ? l.summed_dy : l.summed_x) |= 1u << d;
      } else {
        l.order.push_back(kept);
        (is_dy ? l.outputs : l.inputs) *= s[d];
      }
    }
  }
  l.made = n;
  return l;
}

/// Whether `gradient` is the sum over all samples of the layer's dy: that of its bias. Pooling may
/// stand between, behind which `sink_monotone` puts biases, and a reshape of the samples.
constexpr bool is_bias_of(const layer_gradient& l, node_id gradient) {
  const graph& g = l.b->g;
  node_id total = behind_casts(g, gradient);
  while (is<reshape_op>(g.nodes[std::size_t(total)])) total = behind_casts(g, g.operand(total, 0));
  const node& adds = g.nodes[std::size_t(total)];
  const unsigned axes = is<sum_op>(adds) ? adds.attributes.as<axes_options>().axes : 0;
  const node_id of = is<sum_op>(adds) ? behind_casts(g, g.operand(total, 0)) : total;
  unsigned summed = l.is_filter ? 0b1101 : l.summed_dy;
  node_id n = behind_casts(g, l.dy);
  while (n != of) {
    const node& x = g.nodes[std::size_t(n)];
    if (!is<unpool_op>(x) && !is<reshape_op>(x)) return false;
    const node_id before = g.operand(n, 0);
    if (is<reshape_op>(x)) {
      const shape from = g.type(before).shape, to = x.type.shape;
      if (from.rank == 0 || to.rank == 0 || summed != (1u << (to.rank - 1)) - 1 ||
          from[from.rank - 1] != to[to.rank - 1])
        return false;
      summed = (1u << (from.rank - 1)) - 1;
    }
    n = behind_casts(g, before);
  }
  return axes == summed;
}

/// Refuses a parameter that is none of a layer's, and says how it gets another rule.
constexpr void refuse_parameter(std::string_view rule, const gradient_list& g,
                                const parameter_gradient& p, std::string_view why) {
  const std::string_view name = g.name(p);
  const std::size_t dot = name.rfind('.');
  text pattern;
  pattern << (dot == name.npos ? name : name.substr(0, dot)) << (dot == name.npos ? "" : ".*");
  g.b->fail(text() << "optim::" << rule << ": \"" << name << "\" "
                   << g.b->g.type(g.b->g.input(p.parameter)) << " " << why
                   << "; the rule is for the weights and biases of dense layers and convolutions: "
                   << "optim::parts(optim::part<\"" << pattern << "\">(optim::adamw{}), "
                   << "optim::rest(optim::" << rule << "{}))");
}
/// Why a gradient is none of a weight.
constexpr text reason_of(const graph& g, node_id gradient) {
  node_id n = behind_casts(g, gradient);
  while (is<reshape_op>(g.nodes[std::size_t(n)])) n = behind_casts(g, g.operand(n, 0));
  const node& x = g.nodes[std::size_t(n)];
  if (is<add_op>(x)) return text("is used more than once: its gradient is a sum");
  if (is<constant_op>(x)) return text("has no gradient: the loss does not depend on it");
  if (x.op == &get_info_of) return text("has a gradient from a loop or a branch");
  if (is<convolution_weight_gradient_op>(x))
    return text("is the filter of a transposed convolution");
  return text() << "is no weight of such a layer, nor a bias beside one: its gradient is made by "
                << x.op->name;
}

/// The layers whose weights and biases the list has. Any other parameter is a fault.
constexpr list<layer_gradient> layer_gradients(std::string_view rule, const gradient_list& g) {
  builder& b = *g.b;
  list<layer_gradient> layers;
  flags taken(g.all.size(), 0);
  for (std::size_t k = 0; k < g.all.size(); ++k) {
    const node_id made = g.all[k].differentiated.id;
    if (made == no_node) {
      refuse_parameter(rule, g, g.all[k], "has a gradient that is handed over to the step");
      return layers;
    }
    const layer_gradient l = weight_gradient_of(b, k, made);
    if (l.made == no_node) continue;
    if (l.is_filter && node_ref{&b, l.made}.as<convolution_options>().window.groups != 1) {
      refuse_parameter(rule, g, g.all[k], "is the filter of a convolution with groups");
      return layers;
    }
    taken[k] = 1;
    layers.push_back(l);
  }
  for (layer_gradient& l : layers) {
    for (std::size_t k = 0; k < g.all.size() && l.bias == layer_gradient::none; ++k) {
      const parameter_gradient& p = g.all[k];
      if (taken[k] || p.gradient.shape().size() != l.outputs) continue;
      if (!is_bias_of(l, p.differentiated.id)) continue;
      l.bias = k;
      taken[k] = 1;
    }
  }
  for (std::size_t k = 0; k < g.all.size(); ++k) {
    if (taken[k]) continue;
    refuse_parameter(rule, g, g.all[k], reason_of(b.g, g.all[k].differentiated.id).view());
    break;
  }
  return layers;
}

}  // namespace cella::optim::detail
