// Directions side by side: replays a region with one more axis on the values that are marked,
// behind all others, where it fills vectors, whatever the function's own extents are. For the many
// tangents of a Jacobian; samples have their axis in front (transform/batch.hpp).
#pragma once

#include <cella/transform/batch.hpp>
#include <optional>

namespace cella::detail {

/// `x` repeated along a new last axis.
constexpr node_id repeat_trailing(builder& b, node_id x, int size) {
  tensor_type t = b.g.type(x);
  t.shape.push_back(size);
  const node& n = b.g.nodes[std::size_t(x)];
  if (is<constant_op>(n)) return constant(b, n.attributes.as<constant_op::options>().value, t).id;
  broadcast_op::options o{t.shape, iteration_space::no_axes};
  for (int i = 0; i + 1 < t.rank(); ++i) o.axes[std::size_t(i)] = std::int8_t(i);
  return b.emit(bound<broadcast_op>(), {x}, o);
}

/// Which values of a region depend on the marked inputs; nothing if an operation on them cannot
/// have a last axis.
constexpr std::optional<flags> trailing_values(builder& b, int r, const flags& inputs) {
  const ids nodes = b.g.regions[std::size_t(r)].nodes;
  const ids own = inputs_of(b, r);
  flags marked(nodes.size(), 0);
  auto place = [&](node_id n) { return std::size_t(b.g.nodes[std::size_t(n)].position); };
  for (std::size_t k = 0; k < own.size(); ++k) marked[place(own[k])] = inputs[k];
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const node& n = b.g.nodes[std::size_t(nodes[i])];
    if (n.op == &input_info_of) continue;
    for (node_id o : b.g.operands(nodes[i])) marked[i] |= marked[place(o)];
    if (marked[i] && (n.type.rank() == max_rank || !n.op->direction_options)) return {};
  }
  return marked;
}

/// The outputs of a region, all with directions; `marked`: see trailing_values.
constexpr ids replay_directions(builder& b, int r, const ids& in, const flags& marked, int size) {
  const ids nodes = b.g.regions[std::size_t(r)].nodes;
  const ids own = inputs_of(b, r);
  ids value(nodes.size(), no_node);
  auto place = [&](node_id n) { return std::size_t(b.g.nodes[std::size_t(n)].position); };
  for (std::size_t k = 0; k < own.size(); ++k) value[place(own[k])] = b.local(in[k]);
  for (std::size_t i = 0; i < nodes.size() && !b.failed(); ++i) {
    const node n = b.g.nodes[std::size_t(nodes[i])];
    if (n.op == &input_info_of) continue;
    ids operands;
    unsigned mask = 0;
    for (node_id o : b.g.operands(nodes[i])) {
      if (marked[place(o)] && operands.size() < 32) mask |= 1u << operands.size();
      operands.push_back(value[place(o)]);
    }
    if (!marked[i]) {
      value[i] = copy_node(b, nodes[i], operands);
      continue;
    }
    if (n.op->kind != op_kind::bilinear) {
      for (std::size_t k = 0; k < operands.size(); ++k) {
        if (!marked[place(b.g.operand(nodes[i], int(k)))])
          operands[k] = repeat_trailing(b, operands[k], size);
      }
    }
    value[i] = copy_node(b, nodes[i], operands,
                         n.op->direction_options(n.attributes, n.type.rank(), size, mask));
  }
  ids out;
  for (node_id n : outputs_of(b, r)) {
    const node_id y = b.failed() ? in[0] : value[place(n)];
    out.push_back(b.failed() || marked[place(n)] ? y : repeat_trailing(b, y, size));
  }
  return out;
}

}  // namespace cella::detail
