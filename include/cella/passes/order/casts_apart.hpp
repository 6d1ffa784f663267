// Gives later uses of what is converted to or from 16 bits a conversion of their own.
#pragma once

#include <cella/graph/graph.hpp>
#include <cella/ops/array.hpp>
#include <cella/ops/cast.hpp>
#include <cella/ops/slicing.hpp>

namespace cella {

/// Copies conversions from 16 bits to f32, and of parameters to 16 bits, for users that stand far
/// behind the first. Shared by the forward pass and the backward pass, the converted tensor would
/// be kept between them, and the memory taken that 16 bits are there to save. To convert again
/// costs little beside reading the tensor. Parts of what is converted are taken again, too:
/// queries, keys and values lie in one tensor.
constexpr graph casts_apart(graph g) {
  constexpr int far = 32;  // nodes: those of a norm stay together
  const auto converts = [&](node_id n) {
    if (!is<cast_op>(g.nodes[std::size_t(n)])) return false;
    const node_id from = g.operand(n, 0);
    const bool given = g.nodes[std::size_t(from)].op == &input_info_of;
    const dtype a = g.type(from).element, b = g.type(n).element;
    return (is_storage_only(a) && b == dtype::f32) ||
           (given && a == dtype::f32 && is_storage_only(b));
  };
  // A part of what is converted, maybe in another shape.
  const auto is_part = [&](node_id n) {
    const node& x = g.nodes[std::size_t(n)];
    if (is<slice_op>(x)) return converts(g.operand(n, 0));
    if (!is<reshape_op>(x)) return false;
    const node_id from = g.operand(n, 0);
    return is<slice_op>(g.nodes[std::size_t(from)]) && converts(g.operand(from, 0));
  };
  list<int> first_use;
  ids newest, order;
  // The conversion, or the part, that is read at position `at` in place of `n`.
  const auto used = [&](const auto& self, node_id n, int at) -> node_id {
    if (std::size_t(n) >= newest.size() || !(converts(n) || is_part(n))) return n;
    if (newest[std::size_t(n)] < 0 || at - first_use[std::size_t(n)] > far) {
      const bool again = newest[std::size_t(n)] >= 0;
      first_use[std::size_t(n)] = at;
      newest[std::size_t(n)] = n;
      if (again) {
        const node x = g.nodes[std::size_t(n)];
        const std::array in{self(self, g.operand(n, 0), at)};
        const node_id copy = g.append_like(n, *x.op, in, x.attributes, x.type);
        order.push_back(copy);
        newest[std::size_t(n)] = copy;
      }
    }
    return newest[std::size_t(n)];
  };
  for (region& r : g.regions) {
    bool any = false;
    for (node_id n : r.nodes) any = any || converts(n);
    if (!any) continue;
    first_use.assign(g.nodes.size(), 0);
    newest.assign(g.nodes.size(), no_node);
    order.clear();
    for (std::size_t i = 0; i < r.nodes.size(); ++i) {
      const node x = g.nodes[std::size_t(r.nodes[i])];
      for (int k = x.first_operand; k < x.first_operand + x.operand_count; ++k) {
        const node_id o = used(used, g.operand_pool[std::size_t(k)], int(i));
        g.operand_pool[std::size_t(k)] = o;
      }
      order.push_back(r.nodes[i]);
    }
    r.nodes = order;
    g.number_nodes(r);
  }
  return g;
}

}  // namespace cella
