// Where the elements of tensors lie, from the operations alone: what each says, or what follows
// from its kind, its tags and its loops.
#pragma once

#include <cella/graph/graph.hpp>
#include <cella/graph/point_bounds.hpp>
#include <cella/ops/op.hpp>

namespace cella {

/// Bounds of the first result of an operation on operands with these bounds and types.
constexpr interval bounds_of(const op_info& op, span<const interval> in,
                             span<const tensor_type> types, const attributes& options);

/// Bounds of each node of a graph, of the first result if it has several. `inputs` are those of the
/// main region's inputs in order; inputs that it lacks, and those of inner regions, have those of
/// their types.
constexpr list<interval> bounds_of(const graph& g, span<const interval> inputs = {});

namespace detail {

constexpr tensor_type first_result(const op_info& op, span<const tensor_type> types,
                                   const attributes& options) {
  if (op.infer) return op.infer(types, options);
  std::array<tensor_type, 8> results;
  op.results(types, options, results);
  return results[0];
}

/// All ends at their ends, as far as the function is defined.
constexpr interval bounds_by_ends(const op_info& op, span<const interval> in,
                                  const attributes& options) {
  std::array<interval, 3> x{};
  for (std::size_t k = 0; k < in.size(); ++k) x[k] = intersection(in[k], op.domain);
  return {op.scalar(options, x[0].low, x[1].low, x[2].low),
          op.scalar(options, x[0].high, x[1].high, x[2].high)};
}

/// The hull of the operands in which an operation is linear: those that it moves.
constexpr interval hull_of_moved(const op_info& op, span<const interval> in) {
  interval all = in[0];
  for (std::size_t k = 1; k < in.size(); ++k)
    if (op.linear_in >> std::min<std::size_t>(k, 31) & 1) all = hull(all, in[k]);
  return all;
}

/// What the loops tell: of sums of products, of products and of extrema.
constexpr interval bounds_by_loops(const op_info& op, span<const interval> in,
                                   span<const tensor_type> types, const attributes& options,
                                   const tensor_type& result) {
  const iteration_space s = op.space(types, options);
  for (const iteration_space::factor& f : s.factors)
    if (f.whole) return {};
  auto read = [&](std::size_t k) { return read_by_points(s, int(k), types[k], in[k]); };
  if (op.kind == op_kind::bilinear && s.over == combination::sum)
    return sum_over_points(s, result, read(0) * read(1));
  if (in.size() != 1 || s.points() == 0) return {};
  if (s.over == combination::product)
    return repeated_product(in[0], points_at_element(s, s.result(), result).most);
  return s.over == combination::maximum || s.over == combination::minimum ? in[0] : interval{};
}

/// What follows from an operation that says nothing.
constexpr interval derived_bounds(const op_info& op, span<const interval> in,
                                  span<const tensor_type> types, const attributes& options,
                                  const tensor_type& result) {
  if (op.traits.rearranges) return hull_of_moved(op, in);
  if (op.traits.nondecreasing && op.scalar) return bounds_by_ends(op, in, options);
  if (op.kind == op_kind::linear && op.computes == compute_class::movement)
    return hull(hull_of_moved(op, in), {0, 0});
  return op.space ? bounds_by_loops(op, in, types, options, result) : interval{};
}

}  // namespace detail

constexpr interval bounds_of(const op_info& op, span<const interval> in,
                             span<const tensor_type> types, const attributes& options) {
  if (op.kind == op_kind::control) return {};
  for (const tensor_type& t : types)
    if (is_complex(t.element)) return {};  // complex numbers have no order
  list<interval> x;
  for (std::size_t k = 0; k < in.size(); ++k)
    x.push_back(intersection(in[k], range_of(types[k].element)));
  const tensor_type result = detail::first_result(op, types, options);
  if (is_complex(result.element)) return {};
  const interval y = op.bounds ? op.bounds(x, types, options)
                               : detail::derived_bounds(op, x, types, options, result);
  return stored_as(y, result.element);
}

constexpr list<interval> bounds_of(const graph& g, span<const interval> inputs) {
  list<interval> all(g.nodes.size(), interval{}), in;
  list<tensor_type> types;
  for (std::size_t i = 0; i < g.nodes.size(); ++i) all[i] = range_of(g.nodes[i].type.element);
  for (std::size_t i = 0; i < std::min(inputs.size(), g.inputs.size()); ++i) {
    interval& y = all[std::size_t(g.input(int(i)))];
    y = intersection(inputs[i], y);
  }
  for (const region& r : g.regions) {
    for (node_id n : r.nodes) {
      const node& x = g.nodes[std::size_t(n)];
      interval& y = all[std::size_t(n)];
      if (x.op == &input_info_of || x.op->kind == op_kind::control) continue;
      if (x.op == &get_info_of) {
        if (x.attributes.as<get_attributes>().result == 0)
          y = intersection(all[std::size_t(g.operand(n, 0))], y);
        continue;
      }
      in.clear();
      types.clear();
      for (node_id o : g.operands(n)) {
        in.push_back(all[std::size_t(o)]);
        types.push_back(g.type(o));
      }
      y = bounds_of(*x.op, in, types, x.attributes);
    }
  }
  return all;
}

}  // namespace cella
