// Parameters that are several matrices one behind the other, such as those of queries, keys and
// values: as parameters of their own, of which ranks can have parts.
#pragma once

#include <cella/graph/copy.hpp>
#include <cella/ops/arithmetic.hpp>
#include <cella/ops/broadcast.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/parallel/block_name.hpp>
#include <cella/parallel/sharding.hpp>
#include <cella/passes/simplify/dce.hpp>

namespace cella::parallel {

/// The same graph, where blocks of rows take the place of parameters whose product is read in equal
/// slices: as the rows of `qkv.weight` [3 W, W] are read, one [W, W] each for queries, keys and
/// values. Consecutive parts of [3 W, W] are not heads; those of each block are. The blocks are
/// inputs one behind the other, called `qkv.weight#0/3` and so on, as is the optimizer's state; of
/// one parameter they follow each other in memory. Only parameters for which `chosen(name)` is
/// true are taken apart: without ranks one product is faster than three.
template <class Chosen>
constexpr graph unstack_parameters(const graph& g, Chosen chosen);
constexpr graph unstack_parameters(const graph& g) {
  return unstack_parameters(g, [](std::string_view) { return true; });
}

// ------------------------------------------------------------------------------------------------

namespace detail {

/// Into how many blocks of rows the inputs of a graph are taken apart, and which concatenations are
/// the gradients of their products.
class stacked_inputs {
 public:
  template <class Chosen>
  constexpr stacked_inputs(const graph& g, Chosen chosen)
      : counts(g.inputs.size(), 1), joins(g.nodes.size(), 0), g_(g), seen_(g.nodes.size(), 0) {
    for (node_id n : g.regions[0].nodes)
      if (is<slice_op>(g.nodes[std::size_t(n)])) look_at(n);
    for (std::size_t i = 0; i < g.inputs.size(); ++i)
      if (counts[i] > 1 && !chosen(g.view(g.inputs[i].name))) counts[i] = 1;
    for (std::size_t k = 0; k < g.outputs.size(); ++k) {
      const int i = g.outputs[k].updates;
      if (i < 0 || counts[std::size_t(i)] == 1) continue;
      seen_ = flags(g.nodes.size(), 0);
      through_ = &stacked_inputs::mark_gradient;
      walk(g.regions[0].outputs[k], 0, counts[std::size_t(i)]);
    }
  }

  list<int> counts;
  flags joins;

 private:
  /// A slice that begins a value, whose others have the same extents and cover the rest.
  constexpr void look_at(node_id n) {
    const node_id from = g_.operands(n)[0];
    const shape part = g_.type(n).shape, whole = g_.type(from).shape;
    int axis = -1;
    for (int d = 0; d < whole.rank; ++d) {
      if (part[d] == whole[d]) continue;
      if (axis >= 0 || whole[d] % part[d] != 0) return;
      axis = d;
    }
    if (axis < 0) return;
    const int count = whole[axis] / part[axis];
    unsigned found = 0;
    for (node_id other : g_.regions[0].nodes) {
      const node& x = g_.nodes[std::size_t(other)];
      if (!is<slice_op>(x) || g_.operands(other)[0] != from) continue;
      const int i = block_of_slice(x, axis, part);
      if (i >= 0 && i < 32) found |= 1u << i;
    }
    if (count > 31 || found != (1u << count) - 1) return;
    through_ = &stacked_inputs::mark_parameter;
    walk(from, axis, count);
  }

 public:
  /// Which of the blocks along an axis a slice is; -1: none.
  static constexpr int block_of_slice(const node& x, int axis, const shape& block) {
    const auto o = x.attributes.as<slice_op::options>();
    if (!(o.shape == block)) return -1;
    for (int d = 0; d < block.rank; ++d)
      if (o.step[std::size_t(d)] != 1 || (d != axis && o.start[std::size_t(d)] != 0)) return -1;
    const int first = o.start[std::size_t(axis)];
    return first % block[axis] == 0 ? first / block[axis] : -1;
  }

 private:
  /// Follows a loop from the results of nodes to their operands.
  constexpr void walk(node_id n, int d, int count) {
    if ((this->*through_)(n, d, count)) return;
    const node& x = g_.nodes[std::size_t(n)];
    if (seen_[std::size_t(n)] || x.result_count > 0 || !has_parts(x)) return;
    if (!x.op->pointwise && !is<broadcast_op>(x) && !is<matmul_op>(x) &&
        x.op->computes != compute_class::reduction)
      return;
    seen_[std::size_t(n)] = 1;
    const iteration_space space = loops_of(g_, n);
    const auto in = g_.operands(n);
    for (int f = 0; f < int(space.factors.size()); ++f) {
      if (dimension_along(space, int(in.size()), x.type.shape, f) != d) continue;
      for (std::size_t k = 0; k < in.size(); ++k) {
        const int its = dimension_along(space, int(k), g_.type(in[k]).shape, f);
        if (its >= 0) walk(in[k], its, count);
      }
    }
  }
  constexpr int input_of(node_id n) const {
    for (std::size_t i = 0; i < g_.inputs.size(); ++i)
      if (g_.input(int(i)) == n) return int(i);
    return -1;
  }
  constexpr bool mark_parameter(node_id n, int d, int count) {
    const int i = input_of(n);
    if (i >= 0 && d == 0 && g_.inputs[std::size_t(i)].role == input_role::parameter)
      counts[std::size_t(i)] = count;
    return i >= 0;
  }
  constexpr bool mark_gradient(node_id n, int d, int count) {
    const node& x = g_.nodes[std::size_t(n)];
    const int i = input_of(n);
    if (i >= 0 && d == 0 && g_.inputs[std::size_t(i)].role == input_role::slot)
      counts[std::size_t(i)] = count;
    if (!is<concat_op>(x)) return i >= 0;
    const auto in = g_.operands(n);
    bool fits = int(in.size()) == count && x.attributes.as<concat_op::options>().axis == d;
    for (node_id o : in) fits = fits && g_.type(o) == g_.type(in[0]);
    joins[std::size_t(n)] = fits;
    return true;
  }

  const graph& g_;
  flags seen_;
  bool (stacked_inputs::*through_)(node_id, int, int) = nullptr;
};

/// Copies a graph, and of nodes that read blocks a copy for each.
class unstacker {
 public:
  constexpr unstacker(const graph& g, const stacked_inputs& stacked)
      : g_(g), stacked_(stacked), importer_(b_, g), values_(g.nodes.size()) {}

  constexpr graph run() {
    list<int> first;
    for (std::size_t i = 0; i < g_.inputs.size(); ++i) {
      const input_info& in = g_.inputs[i];
      value& v = values_[std::size_t(g_.input(int(i)))];
      tensor_type t = g_.type(g_.input(int(i)));
      const int count = stacked_.counts[i];
      first.push_back(int(b_.g.inputs.size()));
      if (count == 1) {
        v.whole = b_.input(t, in.role, g_.view(in.name));
        continue;
      }
      t.shape[0] /= count;
      v.dimension = 0;
      for (int k = 0; k < count; ++k)
        v.blocks.push_back(b_.input(t, in.role, block_name(g_.view(in.name), k, count).view()));
    }
    for (node_id n : g_.regions[0].nodes)
      if (g_.nodes[std::size_t(n)].op != &input_info_of) add(n);
    ids outputs;
    for (std::size_t k = 0; k < g_.outputs.size(); ++k) {
      const output_info& o = g_.outputs[k];
      const node_id n = g_.regions[0].outputs[k];
      const int count = o.updates < 0 ? 1 : stacked_.counts[std::size_t(o.updates)];
      for (int i = 0; i < count; ++i) {
        outputs.push_back(count == 1 ? whole(n) : blocks(n, 0, count)[std::size_t(i)]);
        const text name =
            count == 1 ? text() << g_.view(o.name) : block_name(g_.view(o.name), i, count);
        const int updates = o.updates < 0 ? -1 : first[std::size_t(o.updates)] + i;
        b_.g.outputs.push_back({updates, b_.g.intern(name.view())});
      }
    }
    b_.end(outputs);
    return dce(std::move(b_.g));
  }

 private:
  /// What there is of an old node's result: all of it, its blocks along a dimension, or both.
  struct value {
    node_id whole = no_node;
    int dimension{};
    ids blocks;
  };

  constexpr void add(node_id n) {
    const node& x = g_.nodes[std::size_t(n)];
    value& v = values_[std::size_t(n)];
    const auto in = g_.operands(n);
    if (is<slice_op>(x)) {
      const value& from = values_[std::size_t(in[0])];
      if (!from.blocks.empty()) {
        const int i = stacked_inputs::block_of_slice(x, from.dimension, x.type.shape);
        if (i >= 0 && b_.g.type(from.blocks[0]) == x.type) {
          v.whole = from.blocks[std::size_t(i)];
          return;
        }
      }
    }
    if (stacked_.joins[std::size_t(n)]) {
      v.dimension = x.attributes.as<concat_op::options>().axis;
      for (node_id o : in) v.blocks.push_back(whole(o));
      return;
    }
    if (is<constant_op>(x) || x.result_count > 0 || !follow(n)) {
      if (x.op == &get_info_of) {
        v.whole = b_.get(whole(in[0]), x.attributes.as<get_attributes>().result);
        return;
      }
      ids operands;
      for (node_id o : in) operands.push_back(whole(o));
      v.whole = importer_.copy(n, operands);
    }
  }
  /// Computes a node block by block, where an operand is in blocks and it can be.
  constexpr bool follow(node_id n) {
    if (!has_parts(g_.nodes[std::size_t(n)])) return false;
    const iteration_space space = loops_of(g_, n);
    const auto in = g_.operands(n);
    for (std::size_t k = 0; k < in.size(); ++k) {
      const value& v = values_[std::size_t(in[k])];
      for (int f = 0; !v.blocks.empty() && f < int(space.factors.size()); ++f)
        if (dimension_along(space, int(k), g_.type(in[k]).shape, f) == v.dimension &&
            cut(n, f, int(v.blocks.size())))
          return true;
    }
    return false;
  }
  /// Cuts loop `f` of a node into so many blocks.
  constexpr bool cut(node_id n, int f, int count) {
    const device_mesh m{{mesh_axis{"block", count}}, 1, {}};
    loop_cut c;
    c[0] = std::int8_t(f);
    if (!cut_node(g_, n, c, m).possible) return false;
    const node& x = g_.nodes[std::size_t(n)];
    const auto in = g_.operands(n);
    ids made;
    int dimension = partial;
    for (int i = 0; i < count; ++i) {
      const node_part part = cut_node(g_, n, c, m, i);
      ids operands;
      for (std::size_t k = 0; k < in.size(); ++k) {
        const int d = part.operands[k][0];
        operands.push_back(d < 0 ? whole(in[k]) : blocks(in[k], d, count)[std::size_t(i)]);
      }
      node own = x;
      own.attributes = part.options;
      dimension = part.results[0][0];
      made.push_back(
          cella::detail::emit_copy(b_, g_, own, operands, b_.g.intern(g_.view(x.cell)), x.regions));
    }
    value& v = values_[std::size_t(n)];
    if (dimension >= 0) {
      v.dimension = dimension;
      v.blocks = made;
      return true;
    }
    var sum{&b_, made[0]};
    for (int i = 1; i < count; ++i) sum = sum + var{&b_, made[std::size_t(i)]};
    v.whole = sum.id;
    return true;
  }
  constexpr node_id whole(node_id n) {
    value& v = values_[std::size_t(n)];
    if (v.whole == no_node)
      v.whole = b_.emit(bound<concat_op>(), v.blocks, concat_op::options{v.dimension});
    return v.whole;
  }
  constexpr ids blocks(node_id n, int dimension, int count) {
    value& v = values_[std::size_t(n)];
    if (v.dimension == dimension && int(v.blocks.size()) == count) return v.blocks;
    const node& x = g_.nodes[std::size_t(n)];
    shape block = x.type.shape;
    block[dimension] /= count;
    ids made;
    if (is<constant_op>(x)) {
      const node_id one =
          b_.emit(bound<constant_op>(), ids{}, constant_op::part_options(x.attributes, block));
      for (int i = 0; i < count; ++i) made.push_back(one);
      return made;
    }
    if (is<broadcast_op>(x) && v.blocks.empty()) {
      // What is repeated along the dimension is repeated less.
      const value before = v;
      const iteration_space space = loops_of(g_, n);
      for (int f = 0; f < int(space.factors.size()); ++f) {
        if (dimension_along(space, 1, x.type.shape, f) != dimension || !cut(n, f, count)) continue;
        made = v.blocks;
        if (before.whole != no_node) v.whole = before.whole;
        return made;
      }
    }
    for (int i = 0; i < count; ++i) {
      slice_op::options o{block, {}, {1, 1, 1, 1, 1, 1, 1, 1}};
      o.start[std::size_t(dimension)] = std::int32_t(i * block[dimension]);
      made.push_back(b_.emit(bound<slice_op>(), ids{whole(n)}, o));
    }
    return made;
  }

  const graph& g_;
  const stacked_inputs& stacked_;
  builder b_;
  graph_importer importer_;
  list<value> values_;
};

}  // namespace detail

template <class Chosen>
constexpr graph unstack_parameters(const graph& g, Chosen chosen) {
  const detail::stacked_inputs stacked(g, chosen);
  return detail::unstacker(g, stacked).run();
}

}  // namespace cella::parallel
