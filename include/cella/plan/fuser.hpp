// Cuts a graph into groups, each of which becomes one kernel: an anchor (a product, a convolution,
// a reduction ...) with what can be computed in its registers, or a run of elementwise operations.
#pragma once

#include <cella/ops/batch_norm.hpp>
#include <cella/ops/convolution.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/ops/names.hpp>
#include <cella/ops/product_form.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/plan/fuse_rows.hpp>
#include <cella/plan/growth.hpp>
#include <cella/plan/movement_finder.hpp>

namespace cella {

/// Forms the groups of a graph. `Planning` is the back end's: see planner.hpp.
template <class Planning>
class fuser {
 public:
  constexpr explicit fuser(fusion_groups& groups) : c_(groups), g(groups.g), growth_(groups) {
    const ids& nodes = g.regions[0].nodes;
    for (node_id n : nodes) {
      if (open(n) && has_elements(g, n) && !sorted(n)) match(n);
    }
    for (const bool all : {false, true}) {
      for (node_id n : nodes) {
        if (!open(n) || c_.at(n).type.element == dtype::boolean || !startable(n)) continue;
        if (all || !left_to_user(n)) start_elementwise(n);
      }
    }
    ids moving;
    for (node_id n : nodes) {
      if (!open(n) || c_.is_leaf(n) || c_.is_alias(n) || c_.at(n).op == &get_info_of) continue;
      // A view is computed where a group reads it, if it is no result; or materialized on demand.
      if (c_.is_view(n) && !(c_.is_output(n) && moves(n))) continue;
      if (c_.assemble(n)) continue;
      if (moves(n))
        moving.push_back(n);
      else
        alone(n);
    }
    // The last of several movements takes the others in.
    for (std::size_t i = moving.size(); i-- > 0;) {
      if (open(moving[i]) && !move(moving[i])) alone(moving[i]);
    }
  }

  // ---- what a back end's own patterns are made of

  constexpr fusion_groups& groups() { return c_; }
  constexpr void grow(fusion_group& s) { growth_.grow(s); }

  /// A convolution, or a gradient of one, whose kernel works in format `f`.
  constexpr bool convolution(node_id n, step_kind kind, layout f) {
    fusion_group& s = c_.start(kind, n, n, f);
    s.operands = {g.operand(n, 0), g.operand(n, 1), no_node, no_node};
    if (kind != step_kind::convolution_weight_gradient) s.row_axis = 1;
    grow(s);
    return true;
  }
  /// Batch norm or its gradient on images in format `f`; what follows is computed as the result is
  /// written.
  constexpr bool batch_norm(node_id n, layout f) {
    const bool backward = is<batch_norm_gradient_op>(c_.at(n));
    const node_id value = c_.get_of(n, 0);
    if ((!backward && !is<batch_norm_op>(c_.at(n))) || value < 0 || users_of_result(n, 0) != 1)
      return false;
    const step_kind kind = backward ? step_kind::batch_norm_gradient : step_kind::batch_norm;
    if (!has(kind)) return false;
    fusion_group& s = c_.start(kind, n, value, f);
    s.operands = {g.operand(n, 0), g.operand(n, 1), g.operand(n, 2), no_node};
    for (std::size_t k = 0; k < (backward ? 2u : 1u); ++k) {
      if (!c_.is_widened_as_read(s.operands[k])) continue;
      c_.claim(s, s.operands[k]);
      s.operands[k] = g.operand(s.operands[k], 0);
    }
    s.row_axis = 1;
    grow(s);
    for (node_id u : c_.users(n)) {
      if (u != value) c_.claim(s, u);
    }
    return true;
  }

 private:
  constexpr bool open(node_id n) const { return c_.live(n) && !c_.claimed(n); }
  constexpr bool has(step_kind k) const { return c_.machine.kernels.has(k); }
  constexpr void alone(node_id n) { c_.start(c_.kernel_alone(n), n, n, layout::plain); }
  constexpr bool moves(node_id n) const {
    return has(step_kind::move) && movement_finder::moves(c_.at(n));
  }
  /// Boxes of elements that are moved to their places in the result.
  constexpr bool move(node_id n) { return move(n, true) || move(n, false); }
  constexpr bool move(node_id n, bool shared) {
    const movement_finder found(c_, n, shared);
    list<box_loops> all;
    for (const moved_box& b : found.boxes()) {
      all.push_back({b, g.type(n).shape});
      if (!all.back().fits()) return false;
    }
    if (all.empty()) return false;
    fusion_group& s = c_.start(step_kind::move, n, n, layout::plain);
    for (node_id m : found.inside()) c_.claim(s, m);
    s.first_box = int(c_.boxes.size());
    s.box_count = int(all.size());
    c_.boxes.insert(c_.boxes.end(), all.begin(), all.end());
    return true;
  }

  /// Elements along an axis in their order, if nobody else reads in which places they lie.
  constexpr bool sorted(node_id n) {
    if (!is<gather_elements_op>(c_.at(n))) return false;
    const node_id order = g.operand(n, 1);
    if (!is<argsort_op>(c_.at(order)) || g.operand(order, 0) != g.operand(n, 0) ||
        c_.only_user(order) != n || c_.kernel_alone(order) != step_kind::order)
      return false;
    // The axis is the first of the options of both.
    using along = detail::indexing_options;
    if (c_.at(n).attributes.as<along>().axis != c_.at(order).attributes.as<along>().axis)
      return false;
    c_.start(step_kind::order, order, n, layout::plain);
    return true;
  }

  // ---- anchors: one function per pattern, tried in this order

  constexpr void match(node_id n) {
    const dtype element = c_.value_type(n).element;
    if (element == dtype::boolean) return (void)Planning::match_truths(*this, n);
    if (!is_floating(element) || !c_.held(element)) return;
    if (element != c_.element) return (void)(product(n) || reduction(n));
    (void)(Planning::match(*this, n) || loss(n) || attention(n) || plain_convolution(n) ||
           product(n) || rows(n) || reduction(n) || batch_norm(n, layout::plain));
  }
  /// mean(cross_entropy(z, y)) and its gradient (softmax(z) - one_hot(y)) * c, where c is constant.
  constexpr bool loss(node_id n) {
    if (!is<cross_entropy_op>(c_.at(n)) || !has(step_kind::cross_entropy)) return false;
    const node_id z = g.operand(n, 0);
    const node_id sum = c_.only_user(n);
    if (sum < 0 || !is<sum_op>(c_.at(sum))) return false;
    const node_id mean = scaled_by_constant(sum);
    if (mean < 0) return false;
    node_id gradient = no_node;
    node_id softmax = no_node;
    node_id difference = no_node;
    for (node_id u : c_.users(z)) {
      if (!is<softmax_op>(c_.at(u))) continue;
      const node_id d = c_.only_user(u);
      if (d < 0 || !is<sub_op>(c_.at(d))) continue;
      const node_id hot = g.operand(d, 1);
      if (!is<one_hot_op>(c_.at(hot)) || g.operand(hot, 0) != g.operand(n, 1) ||
          c_.only_user(hot) != d)
        continue;
      softmax = u;
      difference = d;
      gradient = scaled_by_constant(d);
    }
    if (!c_.machine.computes(c_.element)) return false;
    if (g.type(g.operand(n, 1)).element != dtype::i32) return false;
    fusion_group& s = c_.start(step_kind::cross_entropy, n, mean, Planning::loss_format(c_, z));
    c_.claim(s, sum);
    s.operands = {z, g.operand(n, 1), gradient, mean};
    if (gradient >= 0) {
      for (node_id m : {softmax, difference, g.operand(difference, 1), gradient}) c_.claim(s, m);
      s.order = std::max(s.order, c_.position(gradient));
      for (node_id m : {sum, mean}) s.order = std::max(s.order, c_.position(m));
    }
    return true;
  }
  /// The product of a value and a constant, if that is the value's only use.
  constexpr node_id scaled_by_constant(node_id n) const {
    const node_id u = c_.only_user(n);
    if (u < 0 || !is<mul_op>(c_.at(u))) return no_node;
    return c_.is_constant(g.operand(u, 0)) || c_.is_constant(g.operand(u, 1)) ? u : no_node;
  }

  /// Attention, and its gradient, as one kernel each.
  constexpr bool attention(node_id n) {
    if (!has(step_kind::attention) || !has(step_kind::attention_gradient)) return false;
    const attention_pattern p = attention_finder(c_).find(n);
    if (!p.found) return false;
    for (node_id m : p.members) {
      if (c_.claimed(m)) return false;
    }
    for (node_id m : p.gradient_members) {
      if (c_.claimed(m)) return false;
    }
    // What the gradient reads has to be there when its first product is.
    for (node_id m : p.read_again) {
      if (p.has_gradient && c_.position(m) > c_.position(p.gradient_members[1])) return false;
    }
    c_.patterns.push_back(p);
    auto begin = [&](step_kind kind, const ids& members) -> fusion_group& {
      fusion_group& s = c_.start(kind, members[0], members[0], layout::plain);
      for (std::size_t i = 1; i < members.size(); ++i) c_.claim(s, members[i]);
      s.accumulated = p.scale;
      s.pattern = int(c_.patterns.size()) - 1;
      s.operands = {p.query.value, p.key.value, p.value.value, no_node};
      return s;
    };
    fusion_group& forward = begin(step_kind::attention, p.members);
    forward.order = c_.position(p.result.value);
    if (p.has_gradient) {
      fusion_group& backward = begin(step_kind::attention_gradient, p.gradient_members);
      const auto [query, key, value] = p.read_again;
      backward.operands = {query, key, value, p.cotangent.value};
      backward.order = std::min(backward.order, c_.position(p.gradient_members[1]));
    }
    for (node_id u : p.unread) release(u);
    return true;
  }
  /// Drops a value, and what only it was computed from, if nothing but attention asks for it.
  constexpr void release(node_id n) {
    if (!c_.live(n) || c_.is_output(n) || c_.is_input(n) || c_.claimed(n)) return;
    for (node_id u : c_.users(n)) {
      const int o = c_.owner[std::size_t(u)];
      if (c_.live(u) && (o < 0 || c_.groups[std::size_t(o)].pattern < 0)) return;
    }
    c_.drop(n);
    const node& x = c_.at(n);
    if (is<slice_op>(x) || c_.is_alias(n)) return;  // their operand is what the kernel reads
    for (node_id o : g.operands(n)) release(o);
  }

  constexpr bool plain_convolution(node_id n) {
    const node& x = c_.at(n);
    const step_kind kind =
        is<convolution_op>(x)                   ? step_kind::convolution
        : is<convolution_input_gradient_op>(x)  ? step_kind::convolution_input_gradient
        : is<convolution_weight_gradient_op>(x) ? step_kind::convolution_weight_gradient
                                                : step_kind::generic;
    return kind != step_kind::generic && has(kind) && convolution(n, kind, layout::plain);
  }
  /// How many `get`s read result k.
  constexpr int users_of_result(node_id n, int k) const {
    int count = 0;
    for (node_id u : c_.users(n)) count += c_.at(u).attributes.as<get_attributes>().result == k;
    return count;
  }

  constexpr bool product(node_id n) {
    if (!is<matmul_op>(c_.at(n)) || c_.is_short_product(n)) return false;
    const product_form form = form_of_product(g, n);
    if (!form.fits || !has(step_kind::product)) return false;
    fusion_group& s = c_.start(step_kind::product, n, n, layout::plain);
    s.operands = {g.operand(n, 0), g.operand(n, 1), no_node, no_node};
    // Rows or columns may be several axes in one run, of which none is walked along, and beside
    // them there may be batches.
    const shape result = g.type(n).shape;
    const auto strides = row_major_strides(result);
    for (int d = 0; d < result.rank; ++d) {
      const std::int64_t step = strides[std::size_t(d)];
      if (result[d] == 1) continue;
      if (result[d] == form.rows && step == form.c_row) s.row_axis = d;
      if (result[d] == form.columns && step == form.c_column) s.column_axis = d;
    }
    grow(s);
    return true;
  }

  constexpr bool rows(node_id n) {
    if (!is<sum_op>(c_.at(n)) || c_.forms.program != layout::plain || !has(step_kind::rows))
      return false;
    const row_pattern p = row_finder(c_, c_.element).find(n);
    if (!p.found) return false;
    fusion_group& s = c_.start(step_kind::rows, n, n, layout::plain);
    s.accumulated = no_node;
    s.members = p.members;
    for (node_id m : p.members) c_.owner[std::size_t(m)] = int(c_.groups.size()) - 1;
    return true;
  }

  /// A sum, or an extremum of plain tensors, with elementwise operations before and after it.
  constexpr bool reduction(node_id n) {
    const node& r = c_.at(n);
    const bool extremum = is<max_op>(r) || is<min_op>(r);
    if ((!is<sum_op>(r) && !extremum) || !has(step_kind::reduce)) return false;
    const node_id x = g.operand(n, 0);
    if (c_.has_many_axes(x)) return false;
    const layout f = extremum ? layout::plain : Planning::sum_format(c_, n);
    fusion_group& s = c_.start(step_kind::reduce, n, n, f);
    s.operands = {x, no_node, no_node, no_node};
    growth_.pull_in(s, x, true, true);
    grow(s);
    return true;
  }

  /// Every operand can be read or computed in registers. (A truth value in memory cannot.)
  constexpr bool startable(node_id n) const {
    if (!c_.pointwise(n) || !has_elements(g, n)) return false;
    for (node_id o : g.operands(n)) {
      if (g.type(o).element == dtype::boolean &&
          !(!c_.claimed(o) && c_.only_user(o) >= 0 && startable(o)))
        return false;
    }
    return true;
  }
  /// Whether `n` is better computed by the loops of the one operation that uses it, which waits for
  /// something that comes later.
  constexpr bool left_to_user(node_id n) const {
    const node_id u = c_.only_user(n);
    if (c_.forms.program != layout::plain || u < 0 || !c_.live(u) || !c_.pointwise(u)) return false;
    if (c_.claimed(u) || g.type(u) != g.type(n)) return false;
    // Half the bytes are read where a number of 16 bits is widened as late as can be.
    if (is<cast_op>(c_.at(n)) && g.type(n).element == c_.element) return true;
    for (node_id o : g.operands(u)) {
      const node_id from = c_.source(c_.is_broadcast(o) ? g.operand(o, 0) : o);
      if (o != n && c_.position(from) > c_.position(n)) return true;
    }
    return growth_.reads_what_others_read(n) && left_to_user(u);
  }
  constexpr void start_elementwise(node_id n) {
    fusion_group& s = c_.start(step_kind::elementwise, n, n, c_.forms.of(n));
    s.accumulated = no_node;
    for (node_id o : g.operands(n)) growth_.pull_in(s, o, true, true);
    grow(s);
  }

  fusion_groups& c_;
  const graph& g;
  group_growth<Planning> growth_;
};

}  // namespace cella
