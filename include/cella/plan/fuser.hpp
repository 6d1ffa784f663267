// Cuts a graph into groups, each of which becomes one kernel: an anchor (a product, a convolution,
// a reduction ...) with what can be computed in its registers, or a run of elementwise operations.
#pragma once

#include <cella/ops/reduction.hpp>
#include <cella/plan/fuse_rows.hpp>
#include <cella/plan/growth.hpp>
#include <cella/plan/product_form.hpp>

namespace cella {

/// Finds the groups. `lanes` are those of the element type.
class fuser : public group_growth {
 public:
  constexpr fuser(const graph& source, dtype element, layout arrangement, int lanes)
      : group_growth(source, element, arrangement, lanes) {
    for (node_id n : g.regions[0].nodes) {
      if (live_[std::size_t(n)] && owner[std::size_t(n)] == unclaimed) match(n);
    }
    for (const bool all : {false, true}) {
      for (node_id n : g.regions[0].nodes) {
        if (!live_[std::size_t(n)] || owner[std::size_t(n)] != unclaimed) continue;
        const node& x = g.nodes[std::size_t(n)];
        if (x.type.element == dtype::boolean || !startable(n)) continue;
        if (all || !left_to_user(n)) start_elementwise(n);
      }
    }
    for (node_id n : g.regions[0].nodes) {
      const node& x = g.nodes[std::size_t(n)];
      if (!live_[std::size_t(n)] || owner[std::size_t(n)] != unclaimed || is_leaf(n) || is_alias(n))
        continue;
      if (x.op == &get_info_of || deferred(n)) continue;
      start(default_kernel(g, n, element_), n, n, layout::plain);
    }
  }

 private:
  // ---- anchors: one function per pattern, tried in this order

  constexpr void match(node_id n) {
    const dtype element = value_type(n).element;
    if (!is_floating(element) || !held(element)) return;
    if (element != element_) return (void)(product(n) || reduction(n));
    (void)(loss(n) || attention(n) || pooled_convolution(n) || convolution(n) || product(n) ||
           rows(n) || reduction(n) || unpooling(n) || blocked_pooling(n) || batch_norms(n));
  }
  /// mean(cross_entropy(z, y)) and its gradient (softmax(z) - one_hot(y)) * c, where c is constant.
  constexpr bool loss(node_id n) {
    if (!is<cross_entropy_op>(g.nodes[std::size_t(n)])) return false;
    const node_id z = g.operand(n, 0);
    const node_id sum = only_user(n);
    if (sum < 0 || !is<sum_op>(g.nodes[std::size_t(sum)])) return false;
    const node_id mean = scaled_by_constant(sum);
    if (mean < 0) return false;
    node_id gradient = no_node;
    node_id softmax = no_node;
    node_id difference = no_node;
    for (node_id u : users(z)) {
      if (!is<softmax_op>(g.nodes[std::size_t(u)])) continue;
      const node_id d = only_user(u);
      if (d < 0 || !is<sub_op>(g.nodes[std::size_t(d)])) continue;
      const node_id hot = g.operand(d, 1);
      if (!is<one_hot_op>(g.nodes[std::size_t(hot)]) || g.operand(hot, 0) != g.operand(n, 1) ||
          only_user(hot) != d)
        continue;
      softmax = u;
      difference = d;
      gradient = scaled_by_constant(d);
    }
    if (element_ != dtype::f32 && element_ != dtype::f64) return false;
    if (g.type(g.operand(n, 1)).element != dtype::i32) return false;
    // With few classes the samples go into the lanes whatever the rest of the program does. A value
    // under another shape would be packed in its own.
    const bool rows = !in_lanes(z) && (g.type(z)[1] >= 32 || source(z) != z);
    fusion_group& s =
        start(step_kind::cross_entropy, n, mean, rows ? layout::plain : layout::lanes);
    claim(s, sum);
    s.operands = {z, g.operand(n, 1), gradient, mean};
    if (gradient >= 0) {
      for (node_id m : {softmax, difference, g.operand(difference, 1), gradient}) claim(s, m);
      s.order = std::max(s.order, position(gradient));
      for (node_id m : {sum, mean}) s.order = std::max(s.order, position(m));
    }
    return true;
  }
  /// The product of a value and a constant, if that is the value's only use.
  constexpr node_id scaled_by_constant(node_id n) const {
    const node_id u = only_user(n);
    if (u < 0 || !is<mul_op>(g.nodes[std::size_t(u)])) return no_node;
    return is_constant(g.operand(u, 0)) || is_constant(g.operand(u, 1)) ? u : no_node;
  }

  /// Attention, and its gradient, as one kernel each.
  constexpr bool attention(node_id n) {
    const attention_pattern p = attention_finder(*this).find(n);
    if (!p.found) return false;
    for (node_id m : p.members) {
      if (owner[std::size_t(m)] != unclaimed) return false;
    }
    for (node_id m : p.gradient_members) {
      if (owner[std::size_t(m)] != unclaimed) return false;
    }
    patterns.push_back(p);
    auto begin = [&](step_kind kind, const ids& members) -> fusion_group& {
      fusion_group& s = start(kind, members[0], members[0], layout::plain);
      for (std::size_t i = 1; i < members.size(); ++i) claim(s, members[i]);
      s.accumulated = p.scale;
      s.pattern = int(patterns.size()) - 1;
      s.operands = {p.query.value, p.key.value, p.value.value, no_node};
      return s;
    };
    fusion_group& forward = begin(step_kind::attention, p.members);
    forward.order = position(p.result.value);
    if (p.has_gradient) {
      fusion_group& backward = begin(step_kind::attention_gradient, p.gradient_members);
      backward.operands[3] = p.cotangent.value;
      backward.order = std::min(backward.order, position(p.gradient_members[1]));
    }
    for (node_id u : p.unread) release(u);
    return true;
  }
  /// Drops a value, and what only it was computed from, if nothing but attention asks for it.
  constexpr void release(node_id n) {
    if (!live(n) || is_output(n) || is_input(n) || owner[std::size_t(n)] != unclaimed) return;
    for (node_id u : users(n)) {
      const int o = owner[std::size_t(u)];
      if (live(u) && (o < 0 || groups[std::size_t(o)].pattern < 0)) return;
    }
    live_[std::size_t(n)] = 0;
    const node& x = g.nodes[std::size_t(n)];
    if (is<slice_op>(x) || is_alias(n)) return;  // their operand is what the kernel reads
    for (node_id o : g.operands(n)) release(o);
  }

  constexpr bool simple_window(const window& w) const {
    return w.groups == 1 && w.dilation == std::array<std::int32_t, 2>{1, 1} && w.before == w.after;
  }
  constexpr window window_of(node_id n) const {
    return g.nodes[std::size_t(n)].attributes.as<convolution_options>().window;
  }
  /// conv2d whose only use is 2x2 max pooling with stride 2.
  constexpr bool pooled_convolution(node_id n) {
    const node& x = g.nodes[std::size_t(n)];
    if (!is<convolution_op>(x) || !simple_window(window_of(n)) || in_blocks(n)) return false;
    const node_id pool = only_user(n);
    if (pool < 0 || !is<max_pool_op>(g.nodes[std::size_t(pool)]) || !halves(pool)) return false;
    const bool lanes = in_lanes(n);
    const node_id pool_argmax = get_of(pool, 1);
    // Outside the lanes the positions are not kept: that kernel serves inference.
    if (!lanes && pool_argmax >= 0) return false;
    if (!lanes && (window_of(n).stride != std::array<std::int32_t, 2>{1, 1} || x.type[0] > 2))
      return false;
    // The positions are bits here, which only the kernels of the lanes read.
    if (pool_argmax >= 0) {
      for (node_id u : users(pool_argmax)) {
        if (!is<unpool_op>(g.nodes[std::size_t(u)]) || !in_lanes(u)) return false;
      }
    }
    const node_id value = get_of(pool, 0);
    if (value < 0) return false;
    fusion_group& s =
        start(step_kind::convolution_pool, n, value, lanes ? layout::lanes : layout::plain);
    claim(s, pool);
    if (pool_argmax >= 0) claim(s, pool_argmax);
    s.pool_argmax = pool_argmax;
    s.operands = {g.operand(n, 0), g.operand(n, 1), no_node, no_node};
    s.row_axis = 1;
    s.order = position(pool);
    grow(s);
    return true;
  }
  constexpr bool halves(node_id pool) const {
    const auto o = g.nodes[std::size_t(pool)].attributes.as<pooling_options>();
    return o.kernel == std::array<std::int32_t, 2>{2, 2} &&
           o.window == window{{2, 2}, {0, 0}, {0, 0}, {1, 1}, 1};
  }

  constexpr bool convolution(node_id n) {
    const node& x = g.nodes[std::size_t(n)];
    step_kind kind{};
    if (is<convolution_op>(x))
      kind = step_kind::convolution;
    else if (is<convolution_input_gradient_op>(x))
      kind = step_kind::convolution_input_gradient;
    else if (is<convolution_weight_gradient_op>(x))
      kind = step_kind::convolution_weight_gradient;
    else
      return false;
    const bool weights = kind == step_kind::convolution_weight_gradient;
    const bool lanes =
        simple_window(window_of(n)) &&
        (weights ? in_lanes(g.operand(n, 0)) && in_lanes(g.operand(n, 1)) : in_lanes(n));
    const bool blocks = weights ? sums_blocks(n) : in_blocks(n);
    fusion_group& s = start(kind, n, n,
                            blocks  ? layout::blocked
                            : lanes ? layout::lanes
                                    : layout::plain);
    s.operands = {g.operand(n, 0), g.operand(n, 1), no_node, no_node};
    if (!weights) s.row_axis = 1;
    grow(s);
    return true;
  }
  /// A weight gradient that has a kernel in blocks; what does not lie so is packed.
  constexpr bool sums_blocks(node_id n) const {
    return arrangement_ == layout::blocked &&
           detail::block_finder(g, lanes_, blocked).has_kernel(n);
  }

  constexpr bool blocked_pooling(node_id n) {
    const node& x = g.nodes[std::size_t(n)];
    if (!in_blocks(n)) return false;
    if (is<max_pool_op>(x)) {
      start(step_kind::max_pool, n, n, layout::blocked).operands[0] = g.operand(n, 0);
      for (node_id u : users(n)) claim(groups.back(), u);
      return true;
    }
    if (!is<unpool_op>(x)) return false;
    start(step_kind::max_unpool, n, n, layout::blocked).operands = {
        g.operand(n, 0), g.operand(n, 1), no_node, no_node};
    return true;
  }
  /// Batch norm and its gradient; what follows is computed as the result is written.
  constexpr bool batch_norms(node_id n) {
    const node& x = g.nodes[std::size_t(n)];
    const bool backward = is<batch_norm_gradient_op>(x);
    const node_id value = get_of(n, 0);
    if ((!backward && !is<batch_norm_op>(x)) || value < 0 || users_of_result(n, 0) != 1)
      return false;
    fusion_group& s = start(backward ? step_kind::batch_norm_gradient : step_kind::batch_norm, n,
                            value, in_blocks(n) ? layout::blocked : layout::plain);
    s.operands = {g.operand(n, 0), g.operand(n, 1), g.operand(n, 2), no_node};
    s.row_axis = 1;
    grow(s);
    for (node_id u : users(n)) {
      if (u != value) claim(s, u);
    }
    return true;
  }
  /// How many `get`s read result k.
  constexpr int users_of_result(node_id n, int k) const {
    int count = 0;
    for (node_id u : users(n))
      count += g.nodes[std::size_t(u)].attributes.as<get_attributes>().result == k;
    return count;
  }

  constexpr bool product(node_id n) {
    if (!is<matmul_op>(g.nodes[std::size_t(n)]) || is_short_product(n)) return false;
    const auto o = g.nodes[std::size_t(n)].attributes.as<matmul_op::options>();
    const node_id a = g.operand(n, 0);
    const node_id b = g.operand(n, 1);
    const bool two = g.type(a).rank() == 2 && g.type(b).rank() == 2 && g.type(n).rank() == 2;
    if (two && in_lanes(a) && in_lanes(b) && !batched[std::size_t(n)] && o.a[0] == o.b[0]) {
      // dW[o][i] = sum over the batch of dy[n][o] x[n][i]
      fusion_group& s = start(step_kind::product_weights, n, n, layout::lanes);
      const bool left_first = o.result[0] == o.a[1];
      s.operands = {left_first ? a : b, left_first ? b : a, no_node, no_node};
      grow(s);
      return true;
    }
    const bool lanes = two && in_lanes(n) && in_lanes(a) && !in_lanes(b);
    const product_form form = form_of_product(g, n);
    if (!lanes && !form.fits) return false;
    fusion_group& s = start(step_kind::product, n, n, lanes ? layout::lanes : layout::plain);
    s.operands = {a, b, no_node, no_node};
    const int rank = g.type(n).rank();
    if (lanes) {
      s.row_axis = 1;
    } else if (rank >= 1) {
      s.column_axis = rank - 1;
      if (rank >= 2) s.row_axis = rank - 2;
      if (form.exchanged) std::swap(s.row_axis, s.column_axis);
    }
    grow(s);
    return true;
  }

  constexpr bool rows(node_id n) {
    if (!is<sum_op>(g.nodes[std::size_t(n)]) || arrangement_ != layout::plain) return false;
    const row_pattern p = row_finder(*this, element_).find(n);
    if (!p.found) return false;
    fusion_group& s = start(step_kind::rows, n, n, layout::plain);
    s.accumulated = no_node;
    s.members = p.members;
    for (node_id m : p.members) owner[std::size_t(m)] = int(groups.size()) - 1;
    return true;
  }

  /// A sum, or an extremum of plain tensors, with elementwise operations before and after it.
  constexpr bool reduction(node_id n) {
    const node& r = g.nodes[std::size_t(n)];
    const bool extremum = is<max_op>(r) || is<min_op>(r);
    if (!is<sum_op>(r) && !extremum) return false;
    const node_id x = g.operand(n, 0);
    const bool keeps_channels = (r.attributes.as<axes_options>().axes & 2) == 0;
    const bool rearranged = extremum || (in_blocks(x) && !keeps_channels);
    fusion_group& s = start(step_kind::reduce, n, n, rearranged ? layout::plain : form(x));
    s.operands = {x, no_node, no_node, no_node};
    pull_in(s, x, true);
    grow(s);
    return true;
  }

  constexpr bool unpooling(node_id n) {
    if (!is<unpool_op>(g.nodes[std::size_t(n)]) || !in_lanes(n)) return false;
    const node_id pool_argmax = g.operand(n, 1);
    const int o = owner[std::size_t(pool_argmax)];
    if (o < 0 || groups[std::size_t(o)].kind != step_kind::convolution_pool) return false;
    // A convolution that only wants its weight gradient un-pools on the fly.
    const node_id u = only_user(n);
    if (u >= 0 && is<convolution_weight_gradient_op>(g.nodes[std::size_t(u)]) &&
        g.operand(u, 1) == n && in_lanes(g.operand(u, 0)) && simple_window(window_of(u)) &&
        window_of(u).stride == std::array<std::int32_t, 2>{1, 1}) {
      fusion_group& s = start(step_kind::convolution_pool_weight_gradient, u, u, layout::lanes);
      claim(s, n);
      s.operands = {g.operand(u, 0), g.operand(n, 0), pool_argmax, no_node};
      grow(s);
      return true;
    }
    fusion_group& s = start(step_kind::max_unpool_2x2, n, n, layout::lanes);
    s.operands = {g.operand(n, 0), pool_argmax, no_node, no_node};
    return true;
  }

  /// Every operand can be read or computed in registers. (A truth value in memory cannot.)
  constexpr bool startable(node_id n) const {
    if (!pointwise(n)) return false;
    for (node_id o : g.operands(n)) {
      if (g.type(o).element == dtype::boolean &&
          !(owner[std::size_t(o)] == unclaimed && only_user(o) >= 0 && startable(o)))
        return false;
    }
    return true;
  }
  /// Whether `n` is better computed by the loops of the one operation that uses it, which waits for
  /// something that comes later.
  constexpr bool left_to_user(node_id n) const {
    const node_id u = only_user(n);
    if (arrangement_ != layout::plain || u < 0 || !live(u) || !pointwise(u)) return false;
    if (owner[std::size_t(u)] != unclaimed || g.type(u) != g.type(n)) return false;
    // Half the bytes are read where a number of 16 bits is widened as late as can be.
    if (is<cast_op>(g.nodes[std::size_t(n)]) && g.type(n).element == element_) return true;
    for (node_id o : g.operands(u)) {
      const node_id from = source(is_broadcast(o) ? g.operand(o, 0) : o);
      if (o != n && position(from) > position(n)) return true;
    }
    return reads_what_others_read(n) && left_to_user(u);
  }
  constexpr void start_elementwise(node_id n) {
    fusion_group& s = start(step_kind::elementwise, n, n, form(n));
    s.accumulated = no_node;
    for (node_id o : g.operands(n)) pull_in(s, o, true);
    grow(s);
  }
};

}  // namespace cella
