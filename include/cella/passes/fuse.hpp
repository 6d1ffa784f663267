// Cuts a graph into groups, each of which becomes one kernel: an anchor (a product, a convolution,
// a reduction ...) with what can be computed in its registers, or a run of elementwise operations.
#pragma once

#include <algorithm>
#include <cella/ops/activation.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/passes/attention_pattern.hpp>
#include <cella/passes/blocked.hpp>
#include <cella/passes/fuse_rows.hpp>
#include <cella/passes/kind_alone.hpp>
#include <cella/passes/layout.hpp>
#include <cella/passes/plan.hpp>
#include <cella/passes/product_form.hpp>

namespace cella {

/// Nodes that one kernel computes.
struct group {
  step_kind kind{};
  layout arrangement{};
  node_id anchor = no_node;
  node_id accumulated = no_node;  ///< the anchor's value, from which the epilogue starts
  node_id corners = no_node;      ///< convolution_pool: the `get` that reads the positions
  ids members;
  std::array<node_id, 4> operands{no_node, no_node, no_node, no_node};
  int row_axis = -1;  ///< axis of the accumulated value that `access::row` walks along
  int column_axis = -1;
  int pattern = -1;  ///< attention: which of the fuser's
  int order{};       ///< groups run in this order
};

/// A few nodes.
struct node_set {
  ids nodes;
  constexpr bool contains(node_id n) const {
    return std::find(nodes.begin(), nodes.end(), n) != nodes.end();
  }
  constexpr void insert(node_id n) { nodes.push_back(n); }
};

/// Finds the groups. `lanes` are those of the element type.
class fuser {
 public:
  static constexpr int unclaimed = -1;

  constexpr fuser(const graph& source, dtype element, layout arrangement, int lanes = 16)
      : g(source),
        batched(source.nodes.size(), 0),
        blocked(source.nodes.size(), 0),
        owner(source.nodes.size(), unclaimed),
        element_(element),
        lanes_(lanes),
        arrangement_(arrangement),
        live_(source.nodes.size(), 0) {
    if (arrangement == layout::blocked)
      blocked = blocked_values(source, lanes);
    else
      batched = batched_values(source);
    index_users();
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
      start(kind_alone(x, element_), n, n, layout::plain);
    }
  }

  const graph& g;
  list<group> groups;
  list<attention_pattern> patterns;

  // ---- what the planner asks

  /// Through reshapes, which share their operand's memory.
  constexpr node_id source(node_id n) const {
    while (is_alias(n)) n = g.operand(n, 0);
    return n;
  }
  constexpr bool is_input(node_id n) const { return g.nodes[std::size_t(n)].op == &input_info_of; }
  constexpr bool is_constant(node_id n) const { return is<constant_op>(g.nodes[std::size_t(n)]); }
  constexpr bool is_broadcast(node_id n) const { return is<broadcast_op>(g.nodes[std::size_t(n)]); }
  /// A slice that loops can read in its place: rows of its operand.
  constexpr bool is_part(node_id n) const {
    const node& x = g.nodes[std::size_t(n)];
    if (!is<slice_op>(x) || arrangement_ != layout::plain || x.type.element != element_)
      return false;
    const auto o = x.attributes.as<slice_op::options>();
    for (int d = 0; d < x.type.rank(); ++d) {
      if (o.step[std::size_t(d)] < 1) return false;
    }
    return x.type.rank() > 0 && o.step[std::size_t(x.type.rank() - 1)] == 1 &&
           !is_constant(source(g.operand(n, 0)));
  }
  /// Uniform numbers that kernels make as they need them: the same ones wherever they are drawn.
  constexpr bool is_draw(node_id n) const {
    const node& x = g.nodes[std::size_t(n)];
    return is<random_uniform_op>(x) && arrangement_ == layout::plain &&
           kind_alone(x, element_) == step_kind::random_uniform &&
           g.type(g.operand(n, 0)).size() == 2;
  }
  /// Not computed on its own: loops read the operand in another way.
  constexpr bool is_view(node_id n) const { return is_broadcast(n) || is_part(n) || is_draw(n); }
  /// A concatenation whose operands are written to their places by the loops that compute them.
  constexpr bool is_assembled(node_id n) const { return assembled_[std::size_t(n)] != 0; }
  constexpr bool is_alias(node_id n) const {
    const node& x = g.nodes[std::size_t(n)];
    return is<reshape_op>(x) || is<identity_op>(x) || is<stop_gradient_op>(x);
  }
  /// Computed element by element, in registers: an elementwise operation, or the conversion of a
  /// number of 16 bits to the program's type and back.
  constexpr bool in_registers(node_id n) const {
    const node& x = g.nodes[std::size_t(n)];
    return x.op->pointwise ||
           (is<cast_op>(x) && held(x.type.element) && held(g.type(g.operand(n, 0)).element));
  }
  constexpr span<const node_id> users(node_id n) const {
    return {users_.data() + first_user_[std::size_t(n)],
            std::size_t(first_user_[std::size_t(n) + 1] - first_user_[std::size_t(n)])};
  }
  /// The first `get` that reads result `k` of node `n`, or no_node.
  constexpr node_id get_of(node_id n, int k) const {
    for (node_id u : users(n)) {
      if (g.nodes[std::size_t(u)].attributes.as<get_attributes>().result == k) return u;
    }
    return no_node;
  }
  constexpr bool live(node_id n) const { return live_[std::size_t(n)] != 0; }
  constexpr bool member(const group& s, node_id n) const {
    return owner[std::size_t(n)] >= 0 && &groups[std::size_t(owner[std::size_t(n)])] == &s;
  }
  /// Computed before the sum of a reduction.
  constexpr bool prologue(const group& s, node_id n) const {
    return s.kind == step_kind::reduce && prologue_[std::size_t(n)];
  }
  constexpr int position(node_id n) const { return g.nodes[std::size_t(n)].position; }
  constexpr bool is_output(node_id n) const { return output_[std::size_t(n)] != 0; }
  constexpr node_id only_user(node_id n) const {
    return users(n).size() == 1 && !is_output(n) ? users(n)[0] : no_node;
  }

  list<char> batched;
  flags blocked;    ///< images in blocks of channels
  list<int> owner;  ///< group of a node

 private:
  constexpr void index_users() {
    const auto& order = g.regions[0].nodes;
    output_.assign(g.nodes.size(), 0);
    for (node_id n : g.regions[0].outputs) live_[std::size_t(n)] = output_[std::size_t(n)] = 1;
    list<int> count(g.nodes.size() + 1, 0);
    for (std::size_t i = order.size(); i-- > 0;) {
      if (!live_[std::size_t(order[i])]) continue;
      for (node_id o : g.operands(order[i])) {
        live_[std::size_t(o)] = 1;
        ++count[std::size_t(o)];
      }
    }
    first_user_.assign(g.nodes.size() + 1, 0);
    for (std::size_t n = 0; n < g.nodes.size(); ++n) first_user_[n + 1] = first_user_[n] + count[n];
    users_.assign(std::size_t(first_user_.back()), no_node);
    list<int> next(first_user_.begin(), first_user_.end());
    for (node_id n : order) {
      if (!live_[std::size_t(n)]) continue;
      for (node_id o : g.operands(n)) users_[std::size_t(next[std::size_t(o)]++)] = n;
    }
  }

  constexpr bool is_leaf(node_id n) const { return is_input(n) || is_constant(n); }
  /// Computed only where a group reads it, or materialized on demand.
  constexpr bool deferred(node_id n) { return is_view(n) || assemble(n); }
  /// True if every operand of a concatenation is the result of plain loops that nobody else reads,
  /// and lies in it by whole rows.
  constexpr bool assemble(node_id n) {
    const node& x = g.nodes[std::size_t(n)];
    if (!is<concat_op>(x) || x.type.element != element_) return false;
    const auto whole = row_major_strides(x.type.shape);
    for (node_id o : g.operands(n)) {
      int inner = x.type.rank() - 1;
      while (inner > 0 && g.type(o)[inner] == 1) --inner;
      if (whole[std::size_t(inner)] != 1) return false;
      const int by = owner[std::size_t(o)];
      if (by < 0 || is_output(o) || is_alias(o)) return false;
      const group& s = groups[std::size_t(by)];
      if (s.kind != step_kind::elementwise || s.arrangement != layout::plain) return false;
      for (node_id u : users(o)) {
        if (u != n && (!member(s, u) || is_alias(u))) return false;
      }
      if (std::ranges::count(users(o), n) != 1) return false;
    }
    assembled_[std::size_t(n)] = 1;
    return true;
  }
  /// Whether registers hold numbers of this type: of the program's, or stored in 16 bits.
  constexpr bool held(dtype e) const {
    return e == element_ || (element_ == dtype::f32 && is_storage_only(e));
  }
  constexpr bool pointwise(node_id n) const {
    const node& x = g.nodes[std::size_t(n)];
    if (!in_registers(n) || is_alias(n)) return false;
    if (!held(x.type.element) && x.type.element != dtype::boolean) return false;
    for (node_id o : g.operands(n)) {
      const dtype e = g.type(o).element;
      if (!held(e) && e != dtype::boolean) return false;
      // A truth value that is read from memory has no vector form: only computed ones are fused.
      if (e == dtype::boolean && !g.nodes[std::size_t(source(o))].op->pointwise) return false;
    }
    return true;
  }
  constexpr bool in_lanes(node_id n) const {
    return arrangement_ == layout::lanes && batched[std::size_t(n)];
  }
  constexpr bool in_blocks(node_id n) const { return blocked[std::size_t(n)] != 0; }
  constexpr layout form(node_id n) const {
    return in_blocks(n) ? layout::blocked : in_lanes(n) ? layout::lanes : layout::plain;
  }

  constexpr group& start(step_kind kind, node_id anchor, node_id value, layout arrangement) {
    groups.emplace_back();
    group& s = groups.back();
    s.kind = kind;
    s.arrangement = arrangement;
    s.anchor = anchor;
    s.accumulated = value;
    s.order = position(anchor);
    claim(s, anchor);
    if (value != anchor) claim(s, value);
    return s;
  }
  constexpr void claim(group& s, node_id n) {
    owner[std::size_t(n)] = int(groups.size()) - 1;
    s.members.push_back(n);
  }

  // ---- anchors: one function per pattern, tried in this order

  constexpr void match(node_id n) {
    const dtype element = value_type(n).element;
    if (!is_floating(element) || !held(element)) return;
    if (element != element_) return (void)(product(n) || reduction(n));
    (void)(loss(n) || attention(n) || pooled_convolution(n) || convolution(n) || product(n) ||
           rows(n) || reduction(n) || unpooling(n) || blocked_pooling(n) || batch_norms(n));
  }
  constexpr tensor_type value_type(node_id n) const {
    const node& x = g.nodes[std::size_t(n)];
    return x.result_count ? g.result_type(n, 0) : x.type;
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
    group& s = start(step_kind::cross_entropy, n, mean, rows ? layout::plain : layout::lanes);
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
    auto begin = [&](step_kind kind, const ids& members) -> group& {
      group& s = start(kind, members[0], members[0], layout::plain);
      for (std::size_t i = 1; i < members.size(); ++i) claim(s, members[i]);
      s.accumulated = p.scale;
      s.pattern = int(patterns.size()) - 1;
      s.operands = {p.query.value, p.key.value, p.value.value, no_node};
      return s;
    };
    group& forward = begin(step_kind::attention, p.members);
    forward.order = position(p.result.value);
    if (p.has_gradient) {
      group& backward = begin(step_kind::attention_gradient, p.gradient_members);
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
    const node_id corners = get_of(pool, 1);
    // Outside the lanes the positions are not kept: that kernel serves inference.
    if (!lanes && corners >= 0) return false;
    if (!lanes && (window_of(n).stride != std::array<std::int32_t, 2>{1, 1} || x.type[0] > 2))
      return false;
    // The positions are bits here, which only the kernels of the lanes read.
    if (corners >= 0) {
      for (node_id u : users(corners)) {
        if (!is<unpool_op>(g.nodes[std::size_t(u)]) || !in_lanes(u)) return false;
      }
    }
    const node_id value = get_of(pool, 0);
    if (value < 0) return false;
    group& s = start(step_kind::convolution_pool, n, value, lanes ? layout::lanes : layout::plain);
    claim(s, pool);
    if (corners >= 0) claim(s, corners);
    s.corners = corners;
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
    group& s = start(kind, n, n, blocks ? layout::blocked : lanes ? layout::lanes : layout::plain);
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
    start(step_kind::unpool, n, n, layout::blocked).operands = {g.operand(n, 0), g.operand(n, 1),
                                                                no_node, no_node};
    return true;
  }
  /// Batch norm and its gradient; what follows is computed as the result is written.
  constexpr bool batch_norms(node_id n) {
    const node& x = g.nodes[std::size_t(n)];
    const bool backward = is<batch_norm_gradient_op>(x);
    const node_id value = get_of(n, 0);
    if ((!backward && !is<batch_norm_op>(x)) || value < 0 || users_of_result(n, 0) != 1)
      return false;
    group& s = start(backward ? step_kind::batch_norm_gradient : step_kind::batch_norm, n, value,
                     in_blocks(n) ? layout::blocked : layout::plain);
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
    if (!is<matmul_op>(g.nodes[std::size_t(n)])) return false;
    const auto o = g.nodes[std::size_t(n)].attributes.as<matmul_op::options>();
    const node_id a = g.operand(n, 0);
    const node_id b = g.operand(n, 1);
    const bool two = g.type(a).rank() == 2 && g.type(b).rank() == 2 && g.type(n).rank() == 2;
    if (two && in_lanes(a) && in_lanes(b) && !batched[std::size_t(n)] && o.a[0] == o.b[0]) {
      // dW[o][i] = sum over the batch of dy[n][o] x[n][i]
      group& s = start(step_kind::product_weights, n, n, layout::lanes);
      const bool left_first = o.result[0] == o.a[1];
      s.operands = {left_first ? a : b, left_first ? b : a, no_node, no_node};
      grow(s);
      return true;
    }
    const bool lanes = two && in_lanes(n) && in_lanes(a) && !in_lanes(b);
    const product_form form = form_of_product(g, n);
    if (!lanes && !form.fits) return false;
    group& s = start(step_kind::product, n, n, lanes ? layout::lanes : layout::plain);
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
    group& s = start(step_kind::rows, n, n, layout::plain);
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
    group& s = start(step_kind::reduce, n, n, rearranged ? layout::plain : form(x));
    s.operands = {x, no_node, no_node, no_node};
    pull_in(s, x, true);
    grow(s);
    return true;
  }

  constexpr bool unpooling(node_id n) {
    if (!is<unpool_op>(g.nodes[std::size_t(n)]) || !in_lanes(n)) return false;
    const node_id corners = g.operand(n, 1);
    const int o = owner[std::size_t(corners)];
    if (o < 0 || groups[std::size_t(o)].kind != step_kind::convolution_pool) return false;
    // A convolution that only wants its weight gradient un-pools on the fly.
    const node_id u = only_user(n);
    if (u >= 0 && is<convolution_weight_gradient_op>(g.nodes[std::size_t(u)]) &&
        g.operand(u, 1) == n && in_lanes(g.operand(u, 0)) && simple_window(window_of(u)) &&
        window_of(u).stride == std::array<std::int32_t, 2>{1, 1}) {
      group& s = start(step_kind::convolution_pool_weight_gradient, u, u, layout::lanes);
      claim(s, n);
      s.operands = {g.operand(u, 0), g.operand(n, 0), corners, no_node};
      grow(s);
      return true;
    }
    group& s = start(step_kind::unpool_corners, n, n, layout::lanes);
    s.operands = {g.operand(n, 0), corners, no_node, no_node};
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
    return false;
  }
  constexpr void start_elementwise(node_id n) {
    group& s = start(step_kind::elementwise, n, n, form(n));
    s.accumulated = no_node;
    for (node_id o : g.operands(n)) pull_in(s, o, true);
    grow(s);
  }

  // ---- growth

  /// The most operations of a group: more would not find registers for their values.
  static constexpr int most_operations = 64;

  /// Follows the users of the group's members as long as they are elementwise and all their
  /// operands are in registers or were computed before the anchor.
  constexpr void grow(group& s) {
    for (std::size_t i = 0; i < s.members.size(); ++i) {
      const node_id m = s.members[i];
      if (m == s.anchor && s.accumulated >= 0 && m != s.accumulated) continue;
      if (!follows_accumulated(s, m)) continue;
      for (node_id u : users(m)) {
        if (owner[std::size_t(u)] != unclaimed) continue;
        if (is_alias(u)) {
          // A loop nest has one factorization of its elements, so a reshape ends it.
          if (s.kind == step_kind::elementwise) continue;
          if (s.arrangement == layout::lanes && batched[std::size_t(m)] && !batched[std::size_t(u)])
            continue;
          if (in_blocks(m) != in_blocks(u)) continue;
          claim(s, u);
          continue;
        }
        if (!pointwise(u) || g.type(u).element == dtype::boolean) continue;
        if (g.type(u).size() != value_type(m).size()) continue;
        if (s.arrangement == layout::lanes && batched[std::size_t(m)] != batched[std::size_t(u)])
          continue;
        if (in_blocks(m) != in_blocks(u)) continue;
        bool fits = true;
        for (node_id o : g.operands(u))
          fits = fits && (acceptable(s, o, g.type(u).shape) || joinable(s, o));
        if (!fits || operations(s, u) > most_operations || !has_room(s, u)) continue;
        if (wanted_later(s, u) || left_to_loops(s, m, u)) continue;
        for (node_id o : g.operands(u)) join(s, o);
        claim(s, u);
        for (node_id o : g.operands(u)) pull_in(s, o, s.kind == step_kind::elementwise);
      }
    }
  }
  /// Whether `u` is better computed where it is used: by one elementwise operation that waits for
  /// values of later steps (a derivative's factor, that its cotangent is multiplied by). It would
  /// be stored until then. In the epilogue of a product it stays: there it costs next to nothing.
  constexpr bool wanted_later(const group& s, node_id u) const {
    if (s.kind != step_kind::elementwise && s.kind != step_kind::reduce) return false;
    const node_id w = only_user(u);
    if (s.arrangement != layout::plain || w < 0 || !pointwise(w) || !live(w)) return false;
    if (g.type(w).element == dtype::boolean || owner[std::size_t(w)] != unclaimed) return false;
    for (node_id o : g.operands(w)) {
      if (o != u && !acceptable(s, o, g.type(w).shape) && !joinable(s, o)) return true;
    }
    return false;
  }
  /// Whether `u`, which follows from a product's value `m`, is better computed by the loops that
  /// use it: `m` is stored in any case, and `u` would be, too. A tile writes short pieces of far
  /// rows, which costs more than a loop's reading `m` again.
  constexpr bool left_to_loops(const group& s, node_id m, node_id u) const {
    if (s.kind != step_kind::product || s.arrangement != layout::plain) return false;
    if (m != s.anchor || is_output(u)) return false;
    bool stored = false;
    for (node_id v : users(m)) stored |= !in_registers(v) && !is_alias(v);
    if (!stored) return false;
    for (node_id v : users(u)) {
      if (!pointwise(v) && !is<sum_op>(g.nodes[std::size_t(v)])) return false;
    }
    return true;
  }
  /// Whether loops can compute `o` as well, although others read it: they write it for those, who
  /// all come later. Its operands are there before the loops run, or are joinable in turn.
  constexpr bool joinable(const group& s, node_id o) const {
    node_set joined;
    return joinable(s, o, joined);
  }
  /// The same; adds `o` and what it needs to `joined`, whose nodes are known to be joinable if this
  /// is. A value has many users, so that to ask for each path anew would take exponential time.
  constexpr bool joinable(const group& s, node_id o, node_set& joined) const {
    if (joined.contains(o)) return true;
    if (s.kind != step_kind::elementwise || owner[std::size_t(o)] != unclaimed || !pointwise(o) ||
        joined.nodes.size() == most_writes)
      return false;
    if (!held(g.type(o).element) || g.type(o).shape != g.type(s.anchor).shape) return false;
    if (batched[std::size_t(o)] != batched[std::size_t(s.anchor)]) return false;
    if (in_blocks(o) != in_blocks(s.anchor)) return false;
    for (node_id u : users(o)) {
      const int by = owner[std::size_t(u)];
      if (is_alias(u) || is_view(u) || g.type(u).element == dtype::boolean) return false;
      const int when = by == unclaimed ? position(u) : groups[std::size_t(by)].order;
      if (!member(s, u) && when <= s.order) return false;
    }
    for (node_id p : g.operands(o)) {
      if (g.type(p).element == dtype::boolean) return false;
      if (!acceptable(s, p, g.type(o).shape) && !joinable(s, p, joined)) return false;
    }
    joined.insert(o);
    return true;
  }
  constexpr void join(group& s, node_id o) {
    if (acceptable(s, o, g.type(o).shape) || !joinable(s, o)) return;
    for (node_id p : g.operands(o)) join(s, p);
    claim(s, o);
    for (node_id p : g.operands(o)) pull_in(s, p, true);
  }
  /// The most values that a group reads and writes; a step has room for two more of each.
  static constexpr int most_reads = 14;
  static constexpr int most_writes = 8;

  /// Whether the group can take `u` with what it reads, and write what others still ask for.
  constexpr bool has_room(const group& s, node_id u) const {
    ids reads;
    int writes = 1;
    auto count = [&](const auto& self, node_id n) -> void {
      for (node_id o : g.operands(n)) {
        if (member(s, o) || is_constant(o)) continue;
        if (pullable(s, o)) {
          self(self, o);
        } else if (std::find(reads.begin(), reads.end(), o) == reads.end()) {
          reads.push_back(o);
        }
      }
    };
    for (node_id m : s.members) {
      if (in_registers(m)) count(count, m);
      bool outside = is_output(m);
      for (node_id v : users(m)) outside |= v != u && !member(s, v);
      writes += outside;
    }
    count(count, u);
    // Values that would join are computed and written.
    node_set joined;
    for (node_id o : g.operands(u)) {
      if (!acceptable(s, o, g.type(u).shape)) joinable(s, o, joined);
    }
    for (node_id o : joined.nodes) count(count, o);
    writes += int(joined.nodes.size());
    return int(reads.size()) <= most_reads && writes <= most_writes;
  }
  /// In a reduction, members before the sum are its prologue and are not followed.
  constexpr bool follows_accumulated(const group& s, node_id m) const {
    if (s.kind != step_kind::reduce) return true;
    return !prologue_[std::size_t(m)];
  }

  /// How many operations the group has with `n`, and with what is computed for it alone.
  constexpr int operations(const group& s, node_id n) const {
    return int(s.members.size()) + added(s, n);
  }
  constexpr int added(const group& s, node_id n) const {
    if (member(s, n) || owner[std::size_t(n)] != unclaimed) return 0;
    if (is_alias(n)) return added(s, g.operand(n, 0));
    if (!in_registers(n)) return 0;
    int sum = 1;
    for (node_id o : g.operands(n)) {
      if (pullable(s, o)) sum += added(s, o);
    }
    return sum;
  }

  /// Whether `o` can be an operand of an elementwise member: in registers, a constant, or readable
  /// from memory in a way that the group's kernel knows.
  constexpr bool acceptable(const group& s, node_id o, const shape& domain) const {
    if (member(s, o) && !prologue(s, o)) return o != s.corners;
    if (is_constant(o)) return true;
    if (is_broadcast(o)) return readable_broadcast(s, o, domain);
    if (is_part(o) && s.kind == step_kind::elementwise) return readable_part(s, o);
    if (is_draw(o)) return readable_part(s, o);
    if (pullable(s, o)) {
      for (node_id p : g.operands(o)) {
        if (!acceptable(s, p, domain)) return false;
      }
      return true;
    }
    if (is_alias(o) && only_user(o) >= 0 && member(s, g.operand(o, 0))) return true;
    return readable(s, o) && !read_by_prologue(s, o);
  }
  /// A kernel reads a value in one way: along the loops of a sum, or at the sum's result.
  constexpr bool read_by_prologue(const group& s, node_id o) const {
    if (s.kind != step_kind::reduce) return false;
    for (node_id m : s.members) {
      if (m != s.anchor && !prologue(s, m)) continue;
      for (node_id p : g.operands(m)) {
        if (p == o) return true;
      }
    }
    return false;
  }
  constexpr bool pullable(const group& s, node_id o) const {
    return owner[std::size_t(o)] == unclaimed && pointwise(o) && only_user(o) >= 0 &&
           !is_output(o) &&
           (s.arrangement != layout::lanes || !reduces_batch(s) || !batched[std::size_t(o)]);
  }
  constexpr bool reduces_batch(const group& s) const {
    return s.kind == step_kind::product_weights ||
           s.kind == step_kind::convolution_weight_gradient ||
           s.kind == step_kind::convolution_pool_weight_gradient;
  }
  /// Computed before the group runs.
  constexpr bool available(const group& s, node_id n) const {
    if (is_input(n)) return true;
    const int by = owner[std::size_t(n)];
    if (by < 0) return position(n) < position(s.anchor);
    const group& other = groups[std::size_t(by)];
    return &other != &s && other.order < s.order;
  }
  /// In memory before the anchor runs, in the layout that the epilogue writes.
  constexpr bool readable(const group& s, node_id o) const {
    if (!held(g.type(o).element)) return false;
    const node_id n = source(o);
    if (!available(s, n)) return false;
    if (s.arrangement == layout::blocked &&
        in_blocks(s.accumulated >= 0 ? s.accumulated : s.anchor))
      return in_blocks(o) && in_blocks(n);
    const bool wants_lanes = s.arrangement == layout::lanes && writes_lanes(s);
    return wants_lanes ? batched[std::size_t(o)] && batched[std::size_t(n)] : true;
  }
  /// Whether the epilogue's values carry the batch in the lanes.
  constexpr bool writes_lanes(const group& s) const {
    const node_id v = s.accumulated >= 0 ? s.accumulated : s.anchor;
    return batched[std::size_t(v)];
  }
  constexpr bool readable_part(const group& s, node_id n) const {
    const node_id x = source(g.operand(n, 0));
    return available(s, x);
  }
  constexpr bool readable_broadcast(const group& s, node_id n, const shape& domain) const {
    const node_id x = source(g.operand(n, 0));
    if (!available(s, x) || !held(g.type(x).element)) return false;
    if (g.type(x).size() == 1) return !batched[std::size_t(x)] || s.arrangement != layout::lanes;
    const auto o = g.nodes[std::size_t(n)].attributes.as<broadcast_op::options>();
    if (s.kind == step_kind::elementwise) {
      // In the lanes an operand either has the batch first or does not have it at all.
      return s.arrangement != layout::lanes || (o.axes[0] == 0) == (batched[std::size_t(x)] != 0);
    }
    if (s.kind == step_kind::reduce || s.accumulated < 0) return false;
    return g.type(x).rank() == 1 && domain == value_type(s.accumulated).shape &&
           (o.axes[0] == s.row_axis || o.axes[0] == s.column_axis);
  }

  /// Claims elementwise operands that nobody else uses, so that they are computed in registers:
  /// `before` the anchor (the prologue of a sum, a loop nest) or in its epilogue.
  constexpr void pull_in(group& s, node_id o, bool before) {
    if (is_alias(o) && owner[std::size_t(o)] == unclaimed && only_user(o) >= 0 &&
        pullable_source(s, o)) {
      if (before) mark_prologue(s, o);
      claim(s, o);
      pull_in(s, g.operand(o, 0), before);
      return;
    }
    if (!pullable(s, o)) return;
    for (node_id p : g.operands(o)) {
      if (before ? !readable_in_prologue(s, p) : !acceptable(s, p, g.type(p).shape)) return;
    }
    // Truth values have no form in memory, so they are never left to a kernel of their own.
    if (g.type(o).element != dtype::boolean && operations(s, o) > most_operations) return;
    if (before) mark_prologue(s, o);
    claim(s, o);
    for (node_id p : g.operands(o)) pull_in(s, p, before);
  }
  constexpr bool pullable_source(const group& s, node_id o) const {
    const node_id x = g.operand(o, 0);
    return g.type(o).shape == g.type(x).shape && pullable(s, x);
  }
  constexpr bool readable_in_prologue(const group& s, node_id p) const {
    if (is_constant(p) || member(s, p) || pullable(s, p)) return true;
    if (is_broadcast(p)) {
      const node_id x = source(g.operand(p, 0));
      if (!available(s, x)) return false;
      if (s.kind != step_kind::elementwise && s.kind != step_kind::reduce)
        return readable_broadcast(s, p, g.type(p).shape);
      const auto o = g.nodes[std::size_t(p)].attributes.as<broadcast_op::options>();
      return s.arrangement != layout::lanes || g.type(x).size() == 1 ||
             (o.axes[0] == 0) == (batched[std::size_t(x)] != 0);
    }
    if (is_draw(p)) return readable_part(s, p);
    if (is_part(p) && (s.kind == step_kind::elementwise || s.kind == step_kind::reduce))
      return readable_part(s, p);
    if (s.kind == step_kind::reduce && s.arrangement == layout::lanes) {
      return g.type(p).element == element_ && batched[std::size_t(p)] &&
             batched[std::size_t(source(p))];
    }
    return readable(s, p);
  }
  constexpr void mark_prologue(const group& s, node_id n) {
    if (s.kind == step_kind::reduce && position(n) < position(s.anchor))
      prologue_[std::size_t(n)] = 1;
  }

  dtype element_;
  int lanes_;
  layout arrangement_;
  flags live_;
  flags output_;
  flags assembled_ = flags(g.nodes.size(), 0);
  flags prologue_ = flags(g.nodes.size(), 0);
  list<int> first_user_;
  list<node_id> users_;
};

}  // namespace cella
