// Groups of nodes, each of which becomes one kernel, and how values reach them.
#pragma once

#include <algorithm>
#include <cella/ops/batch_norm.hpp>
#include <cella/ops/cast.hpp>
#include <cella/ops/control.hpp>
#include <cella/ops/product_form.hpp>
#include <cella/ops/random.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/plan/attention_pattern.hpp>
#include <cella/plan/box_loops.hpp>
#include <cella/plan/formats.hpp>
#include <cella/plan/step.hpp>
#include <cella/plan/target.hpp>
#include <cella/plan/uses.hpp>

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
  int pattern = -1;  ///< attention: which of the groups'
  int first_box{};   ///< move: a range of the groups' boxes
  int box_count{};
  int order{};  ///< groups run in this order

  /// The value that the epilogue computes from.
  constexpr node_id value() const { return accumulated >= 0 ? accumulated : anchor; }
};

/// The groups of a graph while the fuser forms them, and afterwards.
class fusion_groups : public value_uses {
 public:
  static constexpr int unclaimed = -1;

  constexpr fusion_groups(const graph& source, dtype program_element, const plan_target& made_for,
                          const value_formats& kept)
      : value_uses(source),
        element(program_element),
        machine(made_for),
        forms(kept),
        owner(source.nodes.size(), unclaimed),
        prologue_(source.nodes.size(), 0),
        short_product_(source.nodes.size(), 0),
        assembled_(source.nodes.size(), 0),
        placed_in_(source.nodes.size(), no_node) {
    if (forms.program != layout::plain) return;
    for (node_id n : g.regions[0].nodes) short_product_[std::size_t(n)] = sums_up_in_loops(n);
  }

  dtype element;
  const plan_target& machine;
  const value_formats& forms;
  list<fusion_group> groups;
  list<attention_pattern> patterns;
  list<box_loops> boxes;
  list<int> owner;  ///< group of a node

  // ---- groups

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
  /// Makes `n` a member of the group that was started last.
  constexpr void claim(fusion_group& s, node_id n) {
    owner[std::size_t(n)] = int(groups.size()) - 1;
    s.members.push_back(n);
  }
  constexpr bool claimed(node_id n) const { return owner[std::size_t(n)] != unclaimed; }
  constexpr bool member(const fusion_group& s, node_id n) const {
    return owner[std::size_t(n)] >= 0 && &groups[std::size_t(owner[std::size_t(n)])] == &s;
  }
  /// Computed before the sum of a reduction.
  constexpr bool prologue(const fusion_group& s, node_id n) const {
    return s.kind == step_kind::reduce && prologue_[std::size_t(n)];
  }
  constexpr void mark_prologue(const fusion_group& s, node_id n) {
    if (s.kind == step_kind::reduce && position(n) < position(s.anchor))
      prologue_[std::size_t(n)] = 1;
  }
  /// The format of what the group's epilogue reads and writes.
  constexpr layout value_format(const fusion_group& s) const {
    return s.arrangement == layout::plain ? layout::plain : forms.of(s.value());
  }

  /// Tensors of more axes than loops: these go over all elements as one axis, and what would be
  /// read in another order is brought into memory before.
  constexpr bool has_many_axes(node_id n) const { return g.type(n).rank() > max_loops; }

  // ---- views: not computed on their own, since loops read the operands in another way

  /// A slice that loops can read in its place: rows of its operand.
  constexpr bool is_strided_view(node_id n) const {
    const node& x = at(n);
    if (!is<slice_op>(x) || forms.program != layout::plain || x.type.element != element ||
        has_many_axes(n))
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
    const node& x = at(n);
    if (!is<slice_op>(x) || forms.program != layout::plain || is_output(n) ||
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
    return is<random_uniform_op>(at(n)) && forms.program == layout::plain && !has_many_axes(n) &&
           kernel_alone(n) == step_kind::random_uniform;
  }
  /// A product of few summands that one elementwise operation reads: loops sum it up as they go.
  constexpr bool is_short_product(node_id n) const {
    return short_product_[std::size_t(n)] && !claimed(n);
  }
  constexpr bool is_view(node_id n) const {
    const node& x = at(n);
    if (is<slice_op>(x)) return is_strided_view(n) || is_contiguous_view(n);
    return is<broadcast_op>(x) || is_draw(n) || is_short_product(n);
  }
  /// A concatenation whose operands are written to their places by the kernels that compute them.
  constexpr bool is_assembled(node_id n) const { return assembled_[std::size_t(n)] != 0; }
  /// The concatenation that `n` is a contiguous part of, which is computed there, or no_node.
  constexpr node_id placed_in(node_id n) const { return placed_in_[std::size_t(n)]; }
  /// What runs an operation that no group has taken.
  constexpr step_kind kernel_alone(node_id n) const {
    const step_kind k = machine.kernel_alone(g, n, element);
    if (k == step_kind::control) return k;
    return machine.kernels.has(k) && has_elements(g, n) ? k : step_kind::generic;
  }

  // ---- what registers hold

  /// Whether registers hold numbers of this type: of the program's, or stored in 16 bits.
  constexpr bool held(dtype e) const {
    return e == element || (element == dtype::f32 && is_storage_only(e));
  }
  /// Whether `n` converts what has been converted before, for a later use (passes/order/
  /// casts_apart.hpp). Computed where the first is, it would be stored until then.
  constexpr bool converts_again(node_id n) const {
    if (!is<cast_op>(at(n))) return false;
    for (node_id v : users(g.operand(n, 0))) {
      if (v != n && is<cast_op>(at(v)) && g.type(v).element == g.type(n).element &&
          position(v) < position(n))
        return true;
    }
    return false;
  }
  /// A conversion from 16 bits whose only user, batch norm, does it as it reads its image. Its
  /// gradient reads the image so, and what comes beside it in the same type.
  constexpr bool is_widened_as_read(node_id n) const {
    const node_id by = only_user(n);
    if (by < 0 || !widens(n)) return false;
    if (is<batch_norm_op>(at(by)))
      return g.operand(by, 0) == n && machine.kernels.has(step_kind::batch_norm);
    if (!is<batch_norm_gradient_op>(at(by)) || !machine.kernels.has(step_kind::batch_norm_gradient))
      return false;
    const node_id image = g.operand(by, 1);
    if (image == n) return true;
    return g.operand(by, 0) == n && only_user(image) == by && widens(image) &&
           g.type(g.operand(image, 0)) == g.type(g.operand(n, 0));
  }
  /// Node `n` reads what its operands were converted from, as memory holds it; or it is such a
  /// conversion that nobody else reads, and is not computed.
  constexpr bool as_stored(node_id n) const { return stored_role(n) & 1; }
  /// Some node reads `n` as it is stored, behind conversions.
  constexpr bool is_read_as_stored(node_id n) const { return stored_role(n) & 2; }
  constexpr void read_as_stored(node_id n, node_id left, node_id right) {
    if (stored_roles_.empty()) stored_roles_.assign(g.nodes.size(), 0);
    stored_roles_[std::size_t(n)] |= 1;
    for (node_id from : {left, right}) stored_roles_[std::size_t(from)] |= 2;
  }
  constexpr void leave_out(node_id n) {
    stored_roles_[std::size_t(n)] |= 1;
    drop(n);
  }
  /// Computed element by element, in registers: an elementwise operation, or the conversion of a
  /// number of 16 bits to the program's type and back.
  constexpr bool in_registers(node_id n) const {
    const node& x = at(n);
    return x.op->pointwise ||
           (is<cast_op>(x) && held(x.type.element) && held(g.type(g.operand(n, 0)).element));
  }
  constexpr bool pointwise(node_id n) const {
    const node& x = at(n);
    if (!in_registers(n) || is_alias(n)) return false;
    if (!held(x.type.element) && x.type.element != dtype::boolean) return false;
    for (node_id o : g.operands(n)) {
      const dtype e = g.type(o).element;
      if (!held(e) && e != dtype::boolean) return false;
      // A truth value that is read from memory has no vector form: only computed ones are fused.
      if (e == dtype::boolean && !at(source(o)).op->pointwise) return false;
    }
    return true;
  }

  /// Whether the kernels that compute a concatenation's operands write them to their places: loops
  /// that nobody else reads write whole rows anywhere, other kernels what is contiguous.
  constexpr bool assemble(node_id n) {
    const node& x = at(n);
    if (!is<concat_op>(x)) return false;
    bool rows = x.type.element == element, contiguous = true;
    for (node_id o : g.operands(n)) {
      rows = rows && written_by_rows(o, n);
      contiguous = contiguous && written_contiguously(o, n);
    }
    for (node_id o : g.operands(n)) {
      if (!rows && contiguous) placed_in_[std::size_t(source(o))] = n;
    }
    assembled_[std::size_t(n)] = rows || contiguous;
    return rows || contiguous;
  }

 private:
  /// Whether `n` converts numbers of 16 bits to the program's type.
  constexpr bool widens(node_id n) const {
    return is<cast_op>(at(n)) && is_storage_only(g.type(g.operand(n, 0)).element) &&
           at(n).type.element == element;
  }
  constexpr int stored_role(node_id n) const {
    return stored_roles_.empty() ? 0 : stored_roles_[std::size_t(n)];
  }
  /// Whether a product is worth no kernel of its own: what follows from it would read it from
  /// memory again, which takes longer than its few multiplications. What they read again and again
  /// stays in the nearest cache.
  constexpr bool sums_up_in_loops(node_id n) const {
    const node_id user = live(n) ? only_user(n) : no_node;
    if (user < 0 || !is<matmul_op>(at(n)) || !has_elements(g, n) || !pointwise(user) ||
        g.type(user) != g.type(n) || g.type(n).element != element)
      return false;
    for (node_id o : g.operands(n)) {
      if (g.type(o).element != element || is_constant(source(o))) return false;
    }
    const walk_of_product w(g, n);
    return w.steps && w.depth > 1 && w.depth <= 8 && w.columns >= machine.lanes(element) &&
           w.column_step[0] + w.column_step[1] == 1 &&
           w.repeated * std::int64_t(size_of(element)) <= machine.nearest_cache / 2;
  }
  constexpr bool written_by_rows(node_id o, node_id n) const {
    if (has_many_axes(n)) return false;
    const auto strides = row_major_strides(g.type(n).shape);
    int inner = g.type(n).rank() - 1;
    while (inner > 0 && g.type(o)[inner] == 1) --inner;
    if (strides[std::size_t(inner)] != 1) return false;
    if (!claimed(o) || is_output(o) || is_alias(o)) return false;
    const fusion_group& s = groups[std::size_t(owner[std::size_t(o)])];
    if (s.kind != step_kind::elementwise || s.arrangement != layout::plain) return false;
    for (node_id u : users(o)) {
      if (u != n && (!member(s, u) || is_alias(u))) return false;
    }
    const auto all = users(o);
    return std::count(all.begin(), all.end(), n) == 1;
  }
  constexpr bool written_contiguously(node_id o, node_id n) const {
    const node& x = at(n);
    for (int d = 0; d < x.attributes.as<concat_op::options>().axis; ++d) {
      if (x.type[d] != 1) return false;
    }
    const node_id value = source(o);
    if (!claimed(value) || is_output(value) || placed_in(value) >= 0) return false;
    const fusion_group& s = groups[std::size_t(owner[std::size_t(value)])];
    if (!step_traits(s.kind).places || s.arrangement != layout::plain) return false;
    int count = 0;
    for (node_id k : g.operands(n)) count += source(k) == value;
    return count == 1;
  }

  flags prologue_, short_product_, assembled_, stored_roles_;
  list<node_id> placed_in_;
};

}  // namespace cella
