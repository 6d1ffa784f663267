// Groups of nodes, each of which becomes one kernel, and what there is to know of a graph to form
// them.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/plan/blocked.hpp>
#include <cella/backend/cpu/plan/layout.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/plan/attention_pattern.hpp>
#include <cella/plan/default_kernel.hpp>
#include <cella/plan/plan.hpp>
#include <cella/plan/product_form.hpp>

namespace cella {

/// Nodes that one kernel computes.
struct fusion_group {
  step_kind kind{};
  layout arrangement{};
  node_id anchor = no_node;
  node_id accumulated = no_node;  ///< the anchor's value, from which the epilogue starts
  node_id pool_argmax = no_node;  ///< convolution_pool: the `get` that reads the positions
  ids members;
  std::array<node_id, 4> operands{no_node, no_node, no_node, no_node};
  int row_axis = -1;  ///< axis of the accumulated value that `access::row` walks along
  int column_axis = -1;
  int pattern = -1;  ///< attention: which of the fuser's
  int order{};       ///< groups run in this order
};

/// The groups of a graph, who uses which value, and what can be computed where.
class grouping {
 public:
  static constexpr int unclaimed = -1;

  const graph& g;
  list<fusion_group> groups;
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
  constexpr bool is_strided_view(node_id n) const {
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
  /// A slice whose elements lie one after the other in its operand, where every kernel can read
  /// them.
  constexpr bool is_contiguous_view(node_id n) const {
    const node& x = g.nodes[std::size_t(n)];
    if (!is<slice_op>(x) || arrangement_ != layout::plain || is_output(n) ||
        is_constant(source(g.operand(n, 0))))
      return false;
    const auto o = x.attributes.as<slice_op::options>();
    const shape whole = g.type(g.operand(n, 0)).shape;
    bool single = true;
    for (int d = 0; d < x.type.rank(); ++d) {
      const bool all = x.type[d] == whole[d];
      if (!single && !all) return false;
      if (x.type[d] > 1 && o.step[std::size_t(d)] != 1) return false;
      single = single && x.type[d] == 1;
    }
    return true;
  }
  /// The value in whose memory `n` lies.
  constexpr node_id whole(node_id n) const {
    while (is_alias(n) || is_contiguous_view(n)) n = g.operand(n, 0);
    return n;
  }
  /// Uniform numbers that kernels make as they need them: the same ones wherever they are drawn.
  constexpr bool is_draw(node_id n) const {
    return is<random_uniform_op>(g.nodes[std::size_t(n)]) && arrangement_ == layout::plain &&
           default_kernel(g, n, element_) == step_kind::random_uniform;
  }
  /// A product of few summands that one elementwise operation reads: loops sum it up as they go.
  constexpr bool is_short_product(node_id n) const {
    return short_product_[std::size_t(n)] && owner[std::size_t(n)] == unclaimed;
  }
  /// Not computed on its own: loops read the operands in another way.
  constexpr bool is_view(node_id n) const {
    return is_broadcast(n) || is_strided_view(n) || is_contiguous_view(n) || is_draw(n) ||
           is_short_product(n);
  }
  /// A concatenation whose operands are written to their places by the kernels that compute them.
  constexpr bool is_assembled(node_id n) const { return assembled_[std::size_t(n)] != 0; }
  /// The concatenation that `n` is a stretch of, which is computed there, or no_node.
  constexpr node_id placed_in(node_id n) const { return placed_in_[std::size_t(n)]; }
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
  constexpr bool member(const fusion_group& s, node_id n) const {
    return owner[std::size_t(n)] >= 0 && &groups[std::size_t(owner[std::size_t(n)])] == &s;
  }
  /// Computed before the sum of a reduction.
  constexpr bool prologue(const fusion_group& s, node_id n) const {
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

 protected:
  constexpr grouping(const graph& source, dtype element, layout arrangement, int lanes)
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
    if (arrangement != layout::plain) return;
    for (node_id n : g.regions[0].nodes) short_product_[std::size_t(n)] = sums_up_in_loops(n);
  }

  /// Whether a product is worth no kernel of its own: what follows from it would read it from
  /// memory again, which takes longer than its few multiplications. What they read again and again
  /// stays in the nearest cache.
  constexpr bool sums_up_in_loops(node_id n) const {
    const node_id user = live(n) ? only_user(n) : no_node;
    if (user < 0 || !is<matmul_op>(g.nodes[std::size_t(n)]) || !pointwise(user) ||
        g.type(user) != g.type(n) || g.type(n).element != element_)
      return false;
    for (node_id o : g.operands(n)) {
      if (g.type(o).element != element_ || is_constant(source(o))) return false;
    }
    const walk_of_product w(g, n);
    return w.steps && w.depth > 1 && w.depth <= 8 && w.columns >= lanes_ &&
           w.column_step[0] + w.column_step[1] == 1 &&
           w.repeated * std::int64_t(size_of(element_)) <= most_repeated;
  }
  static constexpr std::int64_t most_repeated = 1 << 14;

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
  /// True if all operands of a concatenation are computed in their places in it: plain loops that
  /// nobody else reads write whole rows anywhere, other kernels one stretch.
  constexpr bool assemble(node_id n) {
    const node& x = g.nodes[std::size_t(n)];
    if (!is<concat_op>(x)) return false;
    bool rows = x.type.element == element_, stretches = true;
    for (node_id o : g.operands(n)) {
      rows = rows && written_by_rows(o, n);
      stretches = stretches && written_as_stretch(o, n);
    }
    for (node_id o : g.operands(n)) {
      if (!rows && stretches) placed_in_[std::size_t(source(o))] = n;
    }
    assembled_[std::size_t(n)] = rows || stretches;
    return rows || stretches;
  }
  constexpr bool written_by_rows(node_id o, node_id n) const {
    const auto strides = row_major_strides(g.type(n).shape);
    int inner = g.type(n).rank() - 1;
    while (inner > 0 && g.type(o)[inner] == 1) --inner;
    if (strides[std::size_t(inner)] != 1) return false;
    const int by = owner[std::size_t(o)];
    if (by < 0 || is_output(o) || is_alias(o)) return false;
    const fusion_group& s = groups[std::size_t(by)];
    if (s.kind != step_kind::elementwise || s.arrangement != layout::plain) return false;
    for (node_id u : users(o)) {
      if (u != n && (!member(s, u) || is_alias(u))) return false;
    }
    return std::ranges::count(users(o), n) == 1;
  }
  constexpr bool written_as_stretch(node_id o, node_id n) const {
    const node& x = g.nodes[std::size_t(n)];
    for (int d = 0; d < x.attributes.as<concat_op::options>().axis; ++d) {
      if (x.type[d] != 1) return false;
    }
    const node_id value = source(o);
    const int by = owner[std::size_t(value)];
    if (by < 0 || is_output(value) || placed_in(value) >= 0) return false;
    const fusion_group& s = groups[std::size_t(by)];
    const bool writes = s.kind == step_kind::elementwise || s.kind == step_kind::reduce ||
                        s.kind == step_kind::product || s.kind == step_kind::softmax ||
                        s.kind == step_kind::permute;
    if (!writes || s.arrangement != layout::plain) return false;
    const auto operands = g.operands(n);
    return std::ranges::count_if(operands, [&](node_id k) { return source(k) == value; }) == 1;
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

  constexpr fusion_group& start(step_kind kind, node_id anchor, node_id value, layout arrangement) {
    groups.emplace_back();
    fusion_group& s = groups.back();
    s.kind = kind;
    s.arrangement = arrangement;
    s.anchor = anchor;
    s.accumulated = value;
    s.order = position(anchor);
    claim(s, anchor);
    if (value != anchor) claim(s, value);
    return s;
  }
  constexpr void claim(fusion_group& s, node_id n) {
    owner[std::size_t(n)] = int(groups.size()) - 1;
    s.members.push_back(n);
  }

  constexpr tensor_type value_type(node_id n) const {
    const node& x = g.nodes[std::size_t(n)];
    return x.result_count ? g.result_type(n, 0) : x.type;
  }

  dtype element_;
  int lanes_;
  layout arrangement_;
  flags live_;
  flags output_;
  flags short_product_ = flags(g.nodes.size(), 0);
  flags assembled_ = flags(g.nodes.size(), 0);
  list<node_id> placed_in_ = list<node_id>(g.nodes.size(), no_node);
  flags prologue_ = flags(g.nodes.size(), 0);
  list<int> first_user_;
  list<node_id> users_;
};

}  // namespace cella
