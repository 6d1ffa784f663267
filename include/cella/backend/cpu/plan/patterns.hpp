// Groups that only the CPU's kernels know: convolutions, products and pooling in its formats.
#pragma once

#include <cella/backend/cpu/plan/blocked.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/cast.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/plan/fusion_groups.hpp>

namespace cella::cpu {

namespace detail {

/// What convolution `n` in pairs, or a gradient of one, reads in the place of its operands: what
/// those were widened from; of filters, which are rounded as they are packed, what that was rounded
/// from.
constexpr node_id stored_left(const graph& g, node_id n) { return g.operand(g.operand(n, 0), 0); }
constexpr node_id stored_right(const graph& g, node_id n) {
  const node_id narrow = g.operand(g.operand(n, 1), 0);
  const bool rounds = !is<convolution_weight_gradient_op>(g.nodes[std::size_t(n)]) &&
                      is<cast_op>(g.nodes[std::size_t(narrow)]) &&
                      g.type(g.operand(narrow, 0)).element == dtype::f32;
  return rounds ? g.operand(narrow, 0) : narrow;
}
/// Whether convolution `n`, or a gradient of one, multiplies numbers that were widened from bf16,
/// which is fastest in pairs.
constexpr bool wants_pairs(const graph& g, node_id n, int lanes, convolution_algorithm forced) {
  const node& x = g.nodes[std::size_t(n)];
  if (!is_convolution(x) || x.type.element != dtype::f32) return false;
  for (int k = 0; k < 2; ++k) {
    const node& o = g.nodes[std::size_t(g.operand(n, k))];
    if (!is<cast_op>(o) || g.type(g.operand(g.operand(n, k), 0)).element != dtype::bf16)
      return false;
  }
  convolution_shape s = shape_of_convolution(g, n, dtype::f32, lanes);
  s.summands = 2;
  s.by_unit = has_matrix_unit && s.whole_unit_rows(pass_of(x));
  return s.channels % lanes == 0 && s.walk.groups == 1 &&
         has_kernel(convolution_algorithm::direct, s, pass_of(x)) &&
         choose_in_blocks(s, pass_of(x), forced) == convolution_algorithm::direct;
}

}  // namespace detail

/// Finds the convolutions in blocks that multiply pairs, and what is widened for them alone.
constexpr void find_pairs(fusion_groups& c, convolution_algorithm forced) {
  const graph& g = c.g;
  const int lanes = c.machine.lanes(dtype::f32);
  const ids& nodes = g.regions[0].nodes;
  bool any = false;
  for (node_id n : nodes) {
    if (!c.live(n) || !detail::wants_pairs(g, n, lanes, forced)) continue;
    // Of a gradient of filters only the operands are images.
    if (c.forms.of(n) != layout::blocked && !is<convolution_weight_gradient_op>(c.at(n))) continue;
    c.read_as_stored(n, detail::stored_left(g, n), detail::stored_right(g, n));
    any = true;
  }
  if (!any) return;
  // From behind, so that users are known.
  for (std::size_t i = nodes.size(); i-- > 0;) {
    const node_id n = nodes[i];
    if (!c.live(n) || !is<cast_op>(c.at(n)) || c.is_output(n)) continue;
    bool unread = true;
    for (node_id u : c.users(n)) {
      // What is rounded is left out where it is filters for all that widen it.
      const bool rounds = c.at(n).type.element == dtype::bf16;
      unread = unread && c.as_stored(u) && rounds == is<cast_op>(c.at(u));
      for (node_id v : c.users(u)) {
        if (rounds && unread)
          unread = g.operand(v, 1) == u && g.operand(v, 0) != u &&
                   !is<convolution_weight_gradient_op>(c.at(v));
      }
    }
    if (!unread) continue;
    c.leave_out(n);
  }
}

/// Tries to start a group with node `n`. `Fuser` is that of plan/fuser.hpp.
template <class Fuser>
class patterns {
 public:
  constexpr explicit patterns(Fuser& f) : f_(f), c_(f.groups()), g(c_.g) {}

  constexpr bool match(node_id n) { return pooled_convolution(n) || match_batch(n); }
  /// The same for plans that are made at run time, which have no kernel that pools a plain image in
  /// the registers of its convolution.
  constexpr bool match_loaded(node_id n) {
    return (in_lanes(n) && pooled_convolution(n)) || match_batch(n);
  }

 private:
  constexpr bool match_batch(node_id n) {
    return product(n) || unpooling(n) || convolution(n) || blocked_pooling(n) ||
           (in_blocks(n) && f_.batch_norm(n, layout::blocked));
  }
  constexpr bool in_lanes(node_id n) const { return c_.forms.of(n) == layout::lanes; }
  constexpr bool in_blocks(node_id n) const { return c_.forms.of(n) == layout::blocked; }

  static constexpr bool simple_window(const window& w) {
    return w.groups == 1 && w.dilation == std::array<std::int32_t, 2>{1, 1} && w.before == w.after;
  }
  constexpr window window_of(node_id n) const {
    return c_.at(n).attributes.template as<convolution_options>().window;
  }
  /// conv2d whose only use is 2x2 max pooling with stride 2.
  constexpr bool pooled_convolution(node_id n) {
    const node& x = c_.at(n);
    if (!is<convolution_op>(x) || !simple_window(window_of(n)) || in_blocks(n)) return false;
    const node_id pool = c_.only_user(n);
    if (pool < 0 || !is<max_pool_op>(c_.at(pool)) || !halves(pool)) return false;
    const bool lanes = in_lanes(n);
    const node_id pool_argmax = c_.get_of(pool, 1);
    // Outside the lanes that kernel serves inference of one sample: it keeps no positions.
    if (!lanes && pool_argmax >= 0) return false;
    if (!lanes && (window_of(n).stride != std::array<std::int32_t, 2>{1, 1} || x.type[0] != 1))
      return false;
    // The positions are bits here, which only the kernels of the lanes read.
    if (pool_argmax >= 0) {
      if (c_.is_output(pool_argmax)) return false;
      for (node_id u : c_.users(pool_argmax)) {
        if (!is<unpool_op>(c_.at(u)) || !in_lanes(u)) return false;
      }
    }
    const node_id value = c_.get_of(pool, 0);
    if (value < 0) return false;
    fusion_group& s =
        c_.start(step_kind::convolution_pool, n, value, lanes ? layout::lanes : layout::plain);
    c_.claim(s, pool);
    if (pool_argmax >= 0) c_.claim(s, pool_argmax);
    s.pool_argmax = pool_argmax;
    s.operands = {g.operand(n, 0), g.operand(n, 1), no_node, no_node};
    s.row_axis = 1;
    s.order = c_.position(pool);
    f_.grow(s);
    return true;
  }
  constexpr bool halves(node_id pool) const {
    const auto o = c_.at(pool).attributes.template as<pooling_options>();
    return o.kernel == std::array<std::int32_t, 2>{2, 2} &&
           o.window == window{{2, 2}, {0, 0}, {0, 0}, {1, 1}, 1};
  }

  constexpr bool convolution(node_id n) {
    const node& x = c_.at(n);
    if (!is_convolution(x)) return false;
    const bool simple = simple_window(window_of(n));
    if (is<convolution_weight_gradient_op>(x)) {
      constexpr auto kind = step_kind::convolution_weight_gradient;
      // What does not lie in blocks is packed.
      if (c_.forms.program == layout::blocked &&
          cella::detail::has_blocked_kernel(g, n, c_.machine.lanes(x.type.element)))
        return convolution_in_blocks(n, kind);
      return simple && in_lanes(g.operand(n, 0)) && in_lanes(g.operand(n, 1)) &&
             f_.convolution(n, kind, layout::lanes);
    }
    const step_kind kind =
        is<convolution_op>(x) ? step_kind::convolution : step_kind::convolution_input_gradient;
    const layout f = c_.forms.of(n);
    if (f == layout::blocked) return convolution_in_blocks(n, kind);
    return f == layout::lanes && simple && f_.convolution(n, kind, f);
  }
  constexpr bool convolution_in_blocks(node_id n, step_kind kind) {
    f_.convolution(n, kind, layout::blocked);
    if (!c_.as_stored(n)) return true;
    fusion_group& s = c_.groups.back();
    s.operands = {detail::stored_left(g, n), detail::stored_right(g, n), no_node, no_node};
    return true;
  }

  /// Products of features in the lanes and weights.
  constexpr bool product(node_id n) {
    if (!is<matmul_op>(c_.at(n)) || c_.forms.program != layout::lanes) return false;
    const auto o = c_.at(n).attributes.template as<matmul_op::options>();
    const node_id a = g.operand(n, 0);
    const node_id b = g.operand(n, 1);
    if (g.type(a).rank() != 2 || g.type(b).rank() != 2 || g.type(n).rank() != 2 || !in_lanes(a))
      return false;
    if (in_lanes(b) && !in_lanes(n) && o.a[0] == o.b[0]) {
      // dW[o][i] = sum over the batch of dy[n][o] x[n][i]
      fusion_group& s = c_.start(step_kind::product_weights, n, n, layout::lanes);
      const bool left_first = o.result[0] == o.a[1];
      s.operands = {left_first ? a : b, left_first ? b : a, no_node, no_node};
      f_.grow(s);
      return true;
    }
    if (!in_lanes(n) || in_lanes(b)) return false;
    fusion_group& s = c_.start(step_kind::product, n, n, layout::lanes);
    s.operands = {a, b, no_node, no_node};
    s.row_axis = 1;
    f_.grow(s);
    return true;
  }

  constexpr bool unpooling(node_id n) {
    if (!is<unpool_op>(c_.at(n)) || !in_lanes(n)) return false;
    const node_id pool_argmax = g.operand(n, 1);
    const int o = c_.owner[std::size_t(pool_argmax)];
    if (o < 0 || c_.groups[std::size_t(o)].kind != step_kind::convolution_pool) return false;
    // A convolution that only wants its weight gradient un-pools on the fly.
    const node_id u = c_.only_user(n);
    if (u >= 0 && is<convolution_weight_gradient_op>(c_.at(u)) && g.operand(u, 1) == n &&
        in_lanes(g.operand(u, 0)) && simple_window(window_of(u)) &&
        window_of(u).stride == std::array<std::int32_t, 2>{1, 1}) {
      fusion_group& s = c_.start(step_kind::convolution_pool_weight_gradient, u, u, layout::lanes);
      c_.claim(s, n);
      s.operands = {g.operand(u, 0), g.operand(n, 0), pool_argmax, no_node};
      f_.grow(s);
      return true;
    }
    fusion_group& s = c_.start(step_kind::max_unpool_2x2, n, n, layout::lanes);
    s.operands = {g.operand(n, 0), pool_argmax, no_node, no_node};
    return true;
  }

  constexpr bool blocked_pooling(node_id n) {
    const node& x = c_.at(n);
    if (!in_blocks(n)) return false;
    if (is<max_pool_op>(x)) {
      c_.start(step_kind::max_pool, n, n, layout::blocked).operands[0] = g.operand(n, 0);
      for (node_id u : c_.users(n)) c_.claim(c_.groups.back(), u);
      return true;
    }
    if (!is<unpool_op>(x)) return false;
    c_.start(step_kind::max_unpool, n, n, layout::blocked).operands = {
        g.operand(n, 0), g.operand(n, 1), no_node, no_node};
    return true;
  }

  Fuser& f_;
  fusion_groups& c_;
  const graph& g;
};

}  // namespace cella::cpu
