// The operations of a group, lifted from the graph into lines of terms.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cella/backend/cpu/registers/straight_line.hpp>
#include <cella/graph/once.hpp>
#include <cella/ops/cast.hpp>
#include <cstdint>
#include <utility>

namespace cella::cpu {

/// The most terms of a line; the fuser makes shorter ones.
inline constexpr int most_terms = 240;

/// The C++ type of a storage-only element type; void of others.
template <dtype D>
using storage_type =
    typename std::conditional_t<is_storage_only(D), cella::detail::type_of_dtype<D>,
                                std::type_identity<void>>::type;

/// Calls f with a number of the type that memory holds as `stored`: T, or 16 bits of it. At run
/// time these are met in plans only, and those are made by kernels.cpp.
template <class T, class F>
auto with_stored(dtype stored, F f) {
  if constexpr (has_compiled_kernels && std::is_same_v<T, float>) {
    if (stored == dtype::bf16) return f(bfloat16{});
    if (stored == dtype::f16) return f(float16{});
  }
  return f(T{});
}

/// What a step computes from one element, in the order of computation: values of nodes, and for
/// those that memory would hold in 16 bits, these values rounded to that.
struct line_of_nodes {
  struct entry {
    node_id node = no_node;
    bool rounded{};
    friend constexpr bool operator==(const entry&, const entry&) = default;
  };
  std::array<entry, std::size_t(most_terms)> entries{};
  int count{};

  constexpr int place(entry e) const {
    for (int k = 0; k < count; ++k) {
      if (entries[std::size_t(k)] == e) return k;
    }
    return -1;
  }
  constexpr void add(entry e) { entries[std::size_t(count++)] = e; }
};

/// Finds the line of nodes that computes some values in step `s` of a plan for graph `g`: from the
/// numbers of a row, or, for the number `defined`, that number itself.
template <class Graph>
struct line_finder {
  const Graph& g;
  const plan_step& s;
  node_id defined = no_node;

  constexpr const node& at(node_id n) const { return g.nodes[std::size_t(n)]; }
  constexpr bool is_anchor(node_id n) const {
    return n == s.accumulated && s.kind != step_kind::elementwise;
  }
  constexpr bool is_row_number(node_id n) const { return n != defined && s.find_stat(n) >= 0; }
  /// Not computed here: the anchor's value, numbers of a row, what is read, constants.
  constexpr bool given(node_id n) const {
    return is_row_number(n) || is_anchor(n) || s.find_read(n) >= 0 || is<constant_op>(at(n));
  }
  /// The node whose value `n` is: reshapes change none.
  constexpr node_id value_of(node_id n) const {
    const auto moves = [](const node& x) { return !x.op->pointwise && !is<cast_op>(x); };
    while (!given(n) && moves(at(n))) n = g.operand(n, 0);
    return n;
  }
  /// What is read from memory was rounded when it was written.
  constexpr bool rounds(node_id n) const {
    return is_storage_only(g.type(n).element) && (is_anchor(n) || s.find_read(n) < 0);
  }
  constexpr void visit(line_of_nodes& line, node_id n) const {
    n = value_of(n);
    if (line.place({n, false}) >= 0) return;
    if (!given(n)) {
      for (int k = 0; k < at(n).operand_count; ++k) visit(line, g.operand(n, k));
    }
    line.add({n, false});
    if (rounds(n)) line.add({n, true});
  }

  /// Where the value of `n` stands in a line, as an operand.
  constexpr int place(const line_of_nodes& line, node_id n) const {
    n = value_of(n);
    const int k = line.place({n, rounds(n)});
    return g.type(n).element == dtype::boolean ? ~k : k;
  }
  /// The same as a result, which is rounded when it is stored.
  constexpr int place_of_result(const line_of_nodes& line, node_id n) const {
    return line.place({value_of(n), false});
  }
};

/// The same for step S of program P.
template <class P, int S, node_id Defined = no_node>
struct program_lines {
  using program = P;
  static constexpr const plan_step& s = P::plan.steps[std::size_t(S)];
  static constexpr line_finder<std::remove_cvref_t<decltype(P::graph)>> find{P::graph, s, Defined};
  template <node_id... Results>
  static constexpr line_of_nodes line = [] {
    line_of_nodes found;
    (find.visit(found, Results), ...);
    return found;
  }();
};

/// Term K of the line that computes some nodes.
template <class Lines, int K, node_id... Results>
consteval auto lift_term() {
  using P = typename Lines::program;
  constexpr const plan_step& s = Lines::s;
  constexpr auto& line = Lines::template line<Results...>;
  constexpr node_id N = line.entries[std::size_t(K)].node;
  constexpr const node& n = P::graph.nodes[std::size_t(N)];
  constexpr dtype E = P::graph.nodes[std::size_t(N)].type.element;
  constexpr int k = s.find_read(N);
  if constexpr (line.entries[std::size_t(K)].rounded) {
    return std::type_identity<rounded<storage_type<E>, line.place({N, false})>>{};
  } else if constexpr (Lines::find.is_row_number(N)) {
    return std::type_identity<row_number<s.find_stat(N)>>{};
  } else if constexpr (Lines::find.is_anchor(N)) {
    return std::type_identity<accumulated>{};
  } else if constexpr (k >= 0 && s.reads[std::size_t(k < 0 ? 0 : k)].factor >= 0) {
    constexpr const operand_read &a = s.reads[std::size_t(k)], &b = s.reads[std::size_t(k + 1)];
    return std::type_identity<short_product<k, a.how, b.how, a.depth, a.along, b.along>>{};
  } else if constexpr (k >= 0) {
    return std::type_identity<operand_at<k, s.reads[std::size_t(k)].how, storage_type<E>>>{};
  } else if constexpr (is<constant_op>(n)) {
    constexpr double value = n.attributes.template as<constant_op::options>().value;
    return std::type_identity<literal<std::bit_cast<std::uint64_t>(value)>>{};
  } else if constexpr (is<cast_op>(n)) {
    return std::type_identity<converted<Lines::find.place(line, P::graph.operand(N, 0))>>{};
  } else {
    using op = op_of<P::graph.nodes[std::size_t(N)].op>;
    return []<int... I>(std::integer_sequence<int, I...>) {
      if constexpr (requires { typename op::options; }) {
        return std::type_identity<
            operation_with_options<op, P, N, Lines::find.place(line, P::graph.operand(N, I))...>>{};
      } else {
        using form = std::conditional_t<P::root::fast_math, fast<op>, op>;
        return std::type_identity<
            operation<form, Lines::find.place(line, P::graph.operand(N, I))...>>{};
      }
    }
    (std::make_integer_sequence<int, int(n.operand_count)>{});
  }
}
/// Bytes of a result that few caches hold until another step reads it.
inline constexpr std::int64_t beyond_caches = 32 << 20;

/// Whether step `s` stores its result `n` past the caches: one that is so large, whose vectors are
/// aligned, and which is not updated in its place, where it was just read.
constexpr bool passes_caches(const plan_step& s, const tensor_type& type, node_id n, int lanes) {
  if (type.bytes() < beyond_caches || is_storage_only(type.element)) return false;
  const auto end = s.outputs.begin() + s.output_count;
  const auto found =
      std::find_if(s.outputs.begin(), end, [&](const step_output& o) { return o.value == n; });
  if (found == end || found->part || found->summed || found->at.space != arena_space) return false;
  for (int k = 0; k < s.read_count; ++k) {
    if (s.reads[std::size_t(k)].at == found->at) return false;
  }
  for (const buffer_ref& in : s.in) {
    if (in == found->at) return false;
  }
  const bool plain = s.arrangement == layout::plain;
  const int rank = type.rank();
  switch (s.kind) {
    case step_kind::elementwise:
      return !plain || (rank <= max_loops && type[rank - 1] % lanes == 0);
    case step_kind::rows:
      return s.as<rows_step>().width % lanes == 0;
    case step_kind::softmax:
      return plain && type[rank - 1] % lanes == 0;
    case step_kind::batch_norm:
    case step_kind::batch_norm_gradient:
    case step_kind::max_unpool:
      return s.arrangement == layout::blocked;
    case step_kind::scatter:
      return type.shape.size(1, rank) % lanes == 0;
    default:
      return false;
  }
}

template <class Lines, bool Stored, node_id... Results>
consteval auto lift() {
  using P = typename Lines::program;
  constexpr auto& line = Lines::template line<Results...>;
  return []<int... K>(std::integer_sequence<int, K...>) {
    return std::type_identity<
        straight_line<terms<typename decltype(lift_term<Lines, K, Results...>())::type...>,
                      result<Stored ? Lines::find.place_of_result(line, Results)
                                    : Lines::find.place(line, Results),
                             storage_type<P::graph.nodes[std::size_t(Results)].type.element>,
                             Stored && passes_caches(Lines::s, P::graph.type(Results), Results,
                                                     lanes<element<P::element_type>>)>...>>{};
  }
  (std::make_integer_sequence<int, int(line.count)>{});
}
/// The line that computes the value of a node in step S of program P, as operations see it.
template <class P, int S, node_id N>
using line_of = typename decltype(lift<program_lines<P, S>, false, N>())::type;
/// The line that computes number N of a row; of a sum, what is summed.
template <class P, int S, node_id N>
using line_of_row_number = typename decltype(lift<program_lines<P, S, N>, false, N>())::type;

template <class P, int S>
consteval auto lift_outputs() {
  constexpr auto& s = P::plan.steps[std::size_t(S)];
  return []<std::size_t... K>(std::index_sequence<K...>) {
    return lift<program_lines<P, S>, true, s.outputs[K].value...>();
  }
  (std::make_index_sequence<std::size_t(s.output_count)>{});
}
/// The line that computes all that step S writes.
template <class P, int S>
using line_of_outputs = typename decltype(lift_outputs<P, S>())::type;

}  // namespace cella::cpu
