// Which loops of an operation ranks can divide among themselves, and what each then computes: all
// of it follows from the operation's iteration space.
#pragma once

#include <array>
#include <cella/graph/graph.hpp>
#include <cella/graph/options.hpp>
#include <cella/ops/constant.hpp>
#include <cella/parallel/attention_operations.hpp>
#include <cella/parallel/layout.hpp>

namespace cella::parallel {

/// For each axis of the mesh the loop that it cuts; -1: along it all ranks compute the same.
struct loop_cut {
  std::array<std::int8_t, max_mesh_axes> factors{-1, -1, -1};

  constexpr std::int8_t operator[](int a) const { return factors[std::size_t(a)]; }
  constexpr std::int8_t& operator[](int a) { return factors[std::size_t(a)]; }
  constexpr bool is_whole() const { return *this == loop_cut{}; }
  friend constexpr bool operator==(const loop_cut&, const loop_cut&) = default;
};

/// What a rank computes of a node whose loops are cut.
struct node_part {
  bool possible{};
  attributes options{};     ///< with which the operation computes the part
  list<layout> operands{};  ///< how they have to lie
  list<layout> results{};   ///< how they lie then; partial where a cut loop sums up
};

/// What is left to a rank of node `n` if its loops are cut like that: not `possible` where that is
/// more than the operation itself can do (windows that reach into the neighbour's part, sums along
/// an axis that need each other, numbers that depend on the place), or where a loop has fewer
/// places than there are parts. Without cuts everything is possible.
constexpr node_part cut_node(const graph& g, node_id n, const loop_cut& cut, const device_mesh& m,
                             int rank);
/// The same for rank 0, which has the largest part; `possible` if it is for all ranks.
constexpr node_part cut_node(const graph& g, node_id n, const loop_cut& cut, const device_mesh& m);

/// The cuts of node `n` along the mesh axes of a set (bit a: axis a) that are possible; the first
/// is none.
constexpr list<loop_cut> possible_cuts(const graph& g, node_id n, const device_mesh& m,
                                       unsigned axes);

// ------------------------------------------------------------------------------------------------

namespace detail {

constexpr int result_count(const node& x) { return x.result_count > 0 ? x.result_count : 1; }
constexpr tensor_type result_type(const graph& g, node_id n, int k) {
  const node& x = g.nodes[std::size_t(n)];
  return x.result_count > 0 ? g.result_type(n, k) : x.type;
}

/// Whether parts of an operation's loops are something it computes itself.
constexpr bool has_parts(const node& x) {
  if (!x.op->space || x.op == &get_info_of || x.op == &input_info_of) return false;
  if (x.op->traits.impure || x.op->computes == compute_class::random) return false;
  // Numbers that depend on their place, but for those that are all the same.
  return x.op->computes != compute_class::source || is<constant_op>(x);
}

/// The dimension of tensor `t` that is cut where loop `f` is: `replicated` if it does not walk
/// along the loop, and -3 if the parts of the loop are no consecutive parts of one dimension.
inline constexpr int no_part = -3;
constexpr int dimension_along(const iteration_space& s, int t, const shape& extents, int f) {
  int axis = replicated;
  std::int64_t step = 0;
  for (const iteration_space::walk& w : s.walks) {
    if (w.tensor != t || w.factor != f) continue;
    if (axis >= 0) return no_part;
    axis = w.axis;
    step = w.step;
  }
  if (axis < 0) return replicated;
  // The loop has to be the highest digit of the position.
  if (step < 1 || step * s.factors[std::size_t(f)].extent != extents[axis]) return no_part;
  std::int64_t below = 1;
  for (const iteration_space::walk& w : s.walks) {
    if (w.tensor != t || w.axis != axis || w.factor == f) continue;
    if (w.factor == iteration_space::none || w.step < 0) return no_part;
    below += w.step * (s.factors[std::size_t(w.factor)].extent - 1);
  }
  if (below > step) return no_part;
  for (const iteration_space::indexed_axis& i : s.indexed)
    if (i.tensor == t && i.axis == axis) return no_part;
  return axis;
}

constexpr bool same_loops(const iteration_space& a, const iteration_space& b) {
  bool same = a.factors.size() == b.factors.size() && a.walks.size() == b.walks.size() &&
              a.indexed.size() == b.indexed.size() && a.over == b.over;
  for (std::size_t i = 0; same && i < a.factors.size(); ++i)
    same = a.factors[i].extent == b.factors[i].extent && a.factors[i].whole == b.factors[i].whole;
  for (std::size_t i = 0; same && i < a.walks.size(); ++i) {
    const iteration_space::walk &v = a.walks[i], &w = b.walks[i];
    // Steps of a loop with one place say nothing.
    const bool moves = v.factor < 0 || a.factors[std::size_t(v.factor)].extent > 1;
    same = v.tensor == w.tensor && v.axis == w.axis && v.factor == w.factor &&
           (v.step == w.step || !moves);
  }
  for (std::size_t i = 0; same && i < a.indexed.size(); ++i)
    same = a.indexed[i].tensor == b.indexed[i].tensor && a.indexed[i].axis == b.indexed[i].axis;
  return same;
}

/// The dimension of tensor `t` of node `n`, an operand or a result behind them, that is cut where
/// loop `f` is. Keys of another sequence are cut where queries are.
constexpr int dimension_cut(const graph& g, node_id n, const iteration_space& s, int t,
                            const shape& extents, int f) {
  const node& x = g.nodes[std::size_t(n)];
  if (!is_across(x, std::size_t(t)) || f != place_loop(g.type(g.operand(n, 0))))
    return dimension_along(s, t, extents, f);
  return cella::detail::place_axis(x.attributes.as<attention_op_options>(),
                                   cella::detail::attention_role::key, f);
}

/// The same loops but for those of one place, which some operations do not name.
constexpr iteration_space without_single_places(const iteration_space& s) {
  iteration_space left(std::size_t(s.operands));
  left.over = s.over;
  left.indexed = s.indexed;
  list<int> now(s.factors.size(), -1);
  for (std::size_t f = 0; f < s.factors.size(); ++f) {
    if (s.factors[f].extent == 1) continue;
    now[f] = int(left.factors.size());
    left.factors.push_back(s.factors[f]);
  }
  for (iteration_space::walk w : s.walks) {
    if (w.factor >= 0 && now[std::size_t(w.factor)] < 0) continue;
    if (w.factor >= 0) w.factor = decltype(w.factor)(now[std::size_t(w.factor)]);
    left.walks.push_back(w);
  }
  return left;
}

/// The options with the extents of the part wherever they state those of the whole result.
constexpr attributes with_extents(const op_info& op, const attributes& options, const shape& whole,
                                  const shape& part) {
  if (!op.options) return options;
  auto words = options.as<attribute_words>();
  for (const option_field& f : op.options->fields) {
    if (f.kind != option_kind::extents) continue;
    const auto first = std::size_t(f.offset) / 4;
    bool same = words[first] == whole.rank;
    for (int d = 0; d < whole.rank; ++d)
      same = same && words[first + 1 + std::size_t(d)] == whole[d];
    for (int d = 0; same && d < whole.rank; ++d) words[first + 1 + std::size_t(d)] = part[d];
  }
  return words;
}

/// Whether the operation with these options has the loops `wanted` on parts of its operands, and
/// results of these types: then it computes the part.
constexpr bool computes_part(const op_info& op, const attributes& options,
                             span<const tensor_type> in, span<const tensor_type> out,
                             const iteration_space& wanted) {
  if (op.results) {
    std::array<tensor_type, 8> types{};
    const int count = op.results(in, options, types);
    if (std::size_t(count) != out.size()) return false;
    for (std::size_t k = 0; k < out.size(); ++k)
      if (types[k] != out[k]) return false;
  } else if (op.infer(in, options) != out[0]) {
    return false;
  }
  const iteration_space found = op.space(in, options);
  return same_loops(found, wanted) ||
         (found.factors.size() != wanted.factors.size() &&
          same_loops(without_single_places(found), without_single_places(wanted)));
}

}  // namespace detail

constexpr node_part cut_node(const graph& g, node_id n, const loop_cut& cut, const device_mesh& m,
                             int rank) {
  const node& x = g.nodes[std::size_t(n)];
  const auto in = g.operands(n);
  const int results = detail::result_count(x);
  node_part part{false, x.attributes, list<layout>(in.size()), list<layout>(std::size_t(results))};
  if (cut.is_whole()) {
    part.possible = true;
    return part;
  }
  if (!detail::has_parts(x)) return part;
  if (is_attention(x)) {
    // Messages go round the ranks of one mesh axis.
    int rings = 0;
    for (int a = 0; a < m.axis_count; ++a)
      rings += m[a].size > 1 && cut[a] == place_loop(g.type(in[0]));
    if (rings > 1) return part;
  }
  iteration_space space = loops_of(g, n);
  list<int> parts(space.factors.size(), 1);
  list<tensor_type> types;
  for (node_id o : in) types.push_back(g.type(o));
  for (int k = 0; k < results; ++k) types.push_back(detail::result_type(g, n, k));
  for (int a = 0; a < m.axis_count; ++a) {
    const int f = cut[a];
    if (f < 0) continue;
    if (f >= int(space.factors.size()) || space.factors[std::size_t(f)].whole) return part;
    parts[std::size_t(f)] *= m[a].size;
    for (std::size_t t = 0; t < types.size(); ++t) {
      const bool is_result = t >= in.size();
      layout& l = is_result ? part.results[t - in.size()] : part.operands[t];
      int d = detail::dimension_cut(g, n, space, int(t), types[t].shape, f);
      if (d == replicated && is_result) {
        if (space.over != combination::sum || !is_floating(types[t].element)) return part;
        d = partial;
      }
      if (d == detail::no_part) return part;
      l[a] = std::int8_t(d);
    }
  }
  const auto lies = [&](std::size_t t) {
    return t < in.size() ? part.operands[t] : part.results[t - in.size()];
  };
  for (std::size_t f = 0; f < parts.size(); ++f) {
    const std::int64_t extent = space.factors[f].extent;
    if (parts[f] > 1 && extent < parts[f]) return part;
    if (is_attention(x) && int(f) == place_loop(g.type(in[0])) &&
        x.attributes.as<attention_op_options>().places < parts[f])
      return part;
    if (extent % parts[f] == 0) continue;
    // Unequal parts of the loop are those of a dimension only if they are its elements.
    for (std::size_t t = 0; t < types.size(); ++t)
      for (int a = 0; a < m.axis_count; ++a)
        if (cut[a] == int(f) && lies(t)[a] >= 0 && !is_across(x, t) &&
            types[t][lies(t)[a]] != extent)
          return part;
  }
  for (int a = 0; a < m.axis_count; ++a) {
    if (cut[a] < 0) continue;
    std::int64_t& extent = space.factors[std::size_t(cut[a])].extent;
    extent = size_of_part(int(extent), m[a].size, m.coordinate(rank, a));
  }
  const tensor_type whole = types[in.size()];
  for (std::size_t t = 0; t < types.size(); ++t) types[t] = part_of(types[t], lies(t), m, rank);
  const span<const tensor_type> local(types.data(), in.size());
  const span<const tensor_type> made(types.data() + in.size(), std::size_t(results));
  if (x.op->computes == compute_class::pointwise && x.op->pointwise) {
    part.possible = true;
    return part;
  }
  const auto fits = [&](const attributes& options) {
    part.options = options;
    return part.possible = detail::computes_part(*x.op, options, local, made, space);
  };
  if (x.op->part_options && fits(x.op->part_options(x.attributes, made[0].shape))) return part;
  if (!fits(x.attributes))
    fits(detail::with_extents(*x.op, x.attributes, whole.shape, made[0].shape));
  return part;
}

constexpr node_part cut_node(const graph& g, node_id n, const loop_cut& cut, const device_mesh& m) {
  node_part part = cut_node(g, n, cut, m, 0);
  if (!part.possible || cut.is_whole()) return part;
  bool even = true;
  const iteration_space space = loops_of(g, n);
  for (int a = 0; a < m.axis_count; ++a)
    if (cut[a] >= 0) even &= space.factors[std::size_t(cut[a])].extent % m.ranks() == 0;
  // The last rank has the smallest part.
  if (!even) part.possible = cut_node(g, n, cut, m, m.ranks() - 1).possible;
  return part;
}

constexpr list<loop_cut> possible_cuts(const graph& g, node_id n, const device_mesh& m,
                                       unsigned axes) {
  list<loop_cut> cuts(1);
  const node& x = g.nodes[std::size_t(n)];
  if (!detail::has_parts(x)) return cuts;
  const int factors = int(loops_of(g, n).factors.size());
  for (int a = 0; a < m.axis_count; ++a) {
    if (!(axes >> a & 1) || m[a].size == 1) continue;
    const std::size_t before = cuts.size();
    for (std::size_t i = 0; i < before; ++i) {
      for (int f = 0; f < factors; ++f) {
        loop_cut c = cuts[i];
        c[a] = std::int8_t(f);
        if (cut_node(g, n, c, m).possible) cuts.push_back(c);
      }
    }
  }
  return cuts;
}

}  // namespace cella::parallel
