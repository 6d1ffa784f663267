// Fused groups as straight lines: the operations of a group, lifted from the graph into a type.
// Each of its values is computed once, in a register, however many others follow from it.
#pragma once

#include <array>
#include <bit>
#include <cella/backend/cpu/math.hpp>
#include <cella/backend/cpu/simd.hpp>
#include <cella/ops/array.hpp>
#include <cella/passes/plan.hpp>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace cella::cpu {

// ---- the terms of a line

// A term is evaluated with what it sees of the kernel, a cursor; an operation also with the values
// of the terms before it. It names those by their places in the line: k, or ~k if that value is a
// truth value.

/// The anchor's value at this element.
struct accumulated {
  [[gnu::always_inline]] static auto evaluate(const auto& c) { return c.value; }
};
/// Operand `K` of the group, read from memory in its own way.
template <int K, access How>
struct operand_at {
  [[gnu::always_inline]] static auto evaluate(const auto& c) { return c.template read<K, How>(); }
};
/// A number, by the bits of its double.
template <std::uint64_t Bits>
struct literal {
  [[gnu::always_inline]] static auto evaluate(const auto& c) {
    return c.number(std::bit_cast<double>(Bits));
  }
};
template <class Op, int... In>
struct operation {
  [[gnu::always_inline]] static auto evaluate(const auto&, const auto& before) {
    if constexpr (requires { vector_form<Op>::apply(before.template at<In>()...); })
      return vector_form<Op>::apply(before.template at<In>()...);
    else
      return Op::apply(before.template at<In>()...);
  }
};
template <class Op, int... In>
struct operation<fast<Op>, In...> {
  [[gnu::always_inline]] static auto evaluate(const auto& c, const auto& before) {
    if constexpr (requires { vector_form<fast<Op>>::apply(before.template at<In>()...); })
      return vector_form<fast<Op>>::apply(before.template at<In>()...);
    else
      return operation<Op, In...>::evaluate(c, before);
  }
};
/// An operation with options, which are those of node N of program P.
template <class Op, class P, node_id N, int... In>
struct operation_with_options {
  [[gnu::always_inline]] static auto evaluate(const auto&, const auto& before) {
    constexpr auto options =
        P::graph.nodes[std::size_t(N)].attributes.template as<typename Op::options>();
    return Op::apply(options, before.template at<In>()...);
  }
};

/// Which operand a term reads, as a bit.
template <class Term>
inline constexpr unsigned reads_of_term = 0;
template <int K, access How>
inline constexpr unsigned reads_of_term<operand_at<K, How>> = 1u << K;
/// The same, if the term reads at the element that is computed.
template <class Term>
inline constexpr unsigned reads_in_step = 0;
template <int K>
inline constexpr unsigned reads_in_step<operand_at<K, access::same>> = 1u << K;

// ---- lines

/// The values of a line of `Count` terms; each is a number or a truth value.
template <class V, int Count>
struct line_values {
  std::array<V, std::size_t(Count)> numbers;
  std::array<typename V::batch_bool_type, std::size_t(Count)> truths;

  template <int K>
  [[gnu::always_inline]] const auto& at() const {
    if constexpr (K >= 0)
      return numbers[std::size_t(K)];
    else
      return truths[std::size_t(~K)];
  }
  template <int K>
  [[gnu::always_inline]] void set(V x) {
    numbers[std::size_t(K)] = x;
  }
  template <int K>
  [[gnu::always_inline]] void set(typename V::batch_bool_type x) {
    truths[std::size_t(K)] = x;
  }
};

template <class... Terms>
struct terms {};

/// Terms in the order of their computation, and the places of those that are results. Lines with
/// the same operations are the same type, whatever program they come from: kernels are compiled
/// once.
template <class Terms, int... Results>
struct straight_line;
template <class... Terms, int... Results>
struct straight_line<terms<Terms...>, Results...> {
  static constexpr int length = sizeof...(Terms);
  static constexpr int results = sizeof...(Results);
  /// Which operands are read, as bits; and which of them at the element that is computed.
  static constexpr unsigned reads = (0u | ... | reads_of_term<Terms>);
  static constexpr unsigned reads_in_step = (0u | ... | cpu::reads_in_step<Terms>);
  /// The anchor's value itself.
  static constexpr bool is_accumulated =
      std::is_same_v<straight_line, straight_line<terms<accumulated>, 0>>;

  /// The results at the element of cursor `c`.
  [[gnu::always_inline]] static auto evaluate(const auto& c) {
    using vector = decltype(c.number(0.0));
    return evaluate<vector>(c, std::make_integer_sequence<int, length>{});
  }

 private:
  template <class V, int... I>
  [[gnu::always_inline]] static auto evaluate(const auto& c, std::integer_sequence<int, I...>) {
    line_values<V, length> v;
    (set<I, Terms>(v, c), ...);
    return std::array<V, sizeof...(Results)>{v.template at<Results>()...};
  }
  template <int K, class Term>
  [[gnu::always_inline]] static void set(auto& v, const auto& c) {
    if constexpr (requires { Term::evaluate(c); })
      v.template set<K>(Term::evaluate(c));
    else
      v.template set<K>(Term::evaluate(c, v));
  }
};

// ---- lifting

/// The most terms of a line; the fuser makes shorter ones.
inline constexpr int most_terms = 240;

/// What a step computes from one element, as nodes in the order of computation.
struct line_of_nodes {
  std::array<node_id, std::size_t(most_terms)> node{};
  int count{};

  constexpr int place(node_id n) const {
    for (int k = 0; k < count; ++k) {
      if (node[std::size_t(k)] == n) return k;
    }
    return -1;
  }
};

/// Finds the line of nodes that computes some values in step S of program P.
template <class P, int S>
struct line_finder {
  static constexpr const plan_step& s = P::plan.steps[std::size_t(S)];
  static constexpr auto& g = P::graph;

  /// Not computed here: the anchor's value, what is read, numbers.
  static constexpr bool given(node_id n) {
    return (n == s.accumulated && s.kind != step_kind::elementwise) || s.find_read(n) >= 0 ||
           is<constant_op>(g.nodes[std::size_t(n)]);
  }
  /// The node whose value `n` is: reshapes change none.
  static constexpr node_id value_of(node_id n) {
    while (!given(n) && !g.nodes[std::size_t(n)].op->pointwise) n = g.operand(n, 0);
    return n;
  }
  static constexpr void visit(line_of_nodes& line, node_id n) {
    n = value_of(n);
    if (line.place(n) >= 0) return;
    if (!given(n)) {
      for (int k = 0; k < g.nodes[std::size_t(n)].operand_count; ++k) visit(line, g.operand(n, k));
    }
    line.node[std::size_t(line.count++)] = n;
  }
  template <node_id... Results>
  static constexpr line_of_nodes line = [] {
    line_of_nodes found;
    (visit(found, Results), ...);
    return found;
  }();

  /// Where the value of `n` stands in a line.
  static constexpr int place(const line_of_nodes& line, node_id n) {
    const int k = line.place(value_of(n));
    return g.type(n).element == dtype::boolean ? ~k : k;
  }
};

/// The term that computes node N as a part of a line.
template <class P, int S, node_id N, node_id... Results>
consteval auto lift_term() {
  using finder = line_finder<P, S>;
  constexpr const plan_step& s = finder::s;
  constexpr const node& n = P::graph.nodes[std::size_t(N)];
  constexpr int k = s.find_read(N);
  if constexpr (N == s.accumulated && s.kind != step_kind::elementwise) {
    return std::type_identity<accumulated>{};
  } else if constexpr (k >= 0) {
    return std::type_identity<operand_at<k, s.reads[std::size_t(k)].how>>{};
  } else if constexpr (is<constant_op>(n)) {
    constexpr double value = n.attributes.template as<constant_op::options>().value;
    return std::type_identity<literal<std::bit_cast<std::uint64_t>(value)>>{};
  } else {
    using op = op_of<P::graph.nodes[std::size_t(N)].op>;
    return []<int... I>(std::integer_sequence<int, I...>) {
      constexpr auto& line = finder::template line<Results...>;
      if constexpr (requires { typename op::options; }) {
        return std::type_identity<
            operation_with_options<op, P, N, finder::place(line, P::graph.operand(N, I))...>>{};
      } else {
        using form = std::conditional_t<P::root::fast_math, fast<op>, op>;
        return std::type_identity<
            operation<form, finder::place(line, P::graph.operand(N, I))...>>{};
      }
    }
    (std::make_integer_sequence<int, int(n.operand_count)>{});
  }
}
template <class P, int S, node_id... Results>
consteval auto lift() {
  constexpr auto& line = line_finder<P, S>::template line<Results...>;
  return []<std::size_t... K>(std::index_sequence<K...>) {
    return std::type_identity<straight_line<
        terms<typename decltype(lift_term<P, S, line.node[K], Results...>())::type...>,
        line_finder<P, S>::place(line, Results)...>>{};
  }
  (std::make_index_sequence<std::size_t(line.count)>{});
}
/// The line that computes these values in step S of program P.
template <class P, int S, node_id... Results>
using line_of = typename decltype(lift<P, S, Results...>())::type;

template <class P, int S>
consteval auto lift_outputs() {
  constexpr auto& s = P::plan.steps[std::size_t(S)];
  return []<std::size_t... K>(std::index_sequence<K...>) {
    return std::type_identity<line_of<P, S, s.outputs[K].value...>>{};
  }
  (std::make_index_sequence<std::size_t(s.output_count)>{});
}
/// The line that computes all that step S writes.
template <class P, int S>
using line_of_outputs = typename decltype(lift_outputs<P, S>())::type;

// ---- where expressions read and write

/// Addresses of the values that a group reads and writes.
template <class T, int Reads, int Writes>
struct addresses {
  std::array<const T*, std::size_t(Reads)> in{};
  std::array<T*, std::size_t(Writes)> out{};
};

/// What terms see of a kernel whose results are lane vectors (the batch in the lanes).
template <class T, int Reads, int Writes>
struct lanes_cursor {
  const addresses<T, Reads, Writes>& a;
  vec<T> value;
  std::int64_t element;  // lane vector of the result
  int channel;

  vec<T> number(double x) const { return vec<T>(static_cast<T>(x)); }
  template <int K, access How>
  vec<T> read() const {
    const T* p = a.in[std::size_t(K)];
    if constexpr (How == access::same)
      return load(p + element * lanes<T>);
    else if constexpr (How == access::row)
      return vec<T>(p[channel]);
    else
      return vec<T>(*p);
  }
};

/// The same for plain results, `count` at consecutive offsets.
template <class T, int Reads, int Writes>
struct plain_cursor {
  const addresses<T, Reads, Writes>& a;
  vec<T> value;
  std::int64_t offset;
  int row, column, count;

  vec<T> number(double x) const { return vec<T>(static_cast<T>(x)); }
  template <int K, access How>
  vec<T> read() const {
    const T* p = a.in[std::size_t(K)];
    if constexpr (How == access::same)
      return some(p + offset);
    else if constexpr (How == access::row)
      return vec<T>(p[row]);
    else if constexpr (How == access::column)
      return some(p + column);
    else
      return vec<T>(*p);
  }
  vec<T> some(const T* p) const {
    return count == lanes<T> ? load_unaligned(p) : load_first(p, count);
  }
};

/// What terms see of a kernel whose results are vectors of a block of channels.
template <class T, int Reads, int Writes>
struct blocked_cursor {
  const addresses<T, Reads, Writes>& a;
  vec<T> value;
  std::int64_t element;  // vector of the result
  int block;             // of channels

  vec<T> number(double x) const { return vec<T>(static_cast<T>(x)); }
  template <int K, access How>
  vec<T> read() const {
    const T* p = a.in[std::size_t(K)];
    if constexpr (How == access::same)
      return load(p + element * lanes<T>);
    else if constexpr (How == access::row)
      return load_unaligned(p + block * lanes<T>);
    else
      return vec<T>(*p);
  }
};

// ---- sinks: the epilogues of kernels

/// Values in the lanes that no sample fills are stored as zeros, so that sums over the batch need
/// not look. `from` is the first lane vector with such lanes; none if the batch fills them.
struct dead_lanes {
  std::int64_t from;
  unsigned live;
};

/// For kernels that yield lane vectors. All values are computed before the first is stored: a
/// result may replace a value that another one reads.
template <class T, int Reads, bool Ragged, class Line>
struct lanes_sink {
  addresses<T, Reads, Line::results> a;
  dead_lanes dead{};

  [[gnu::always_inline]] void operator()(vec<T> value, std::int64_t element, int channel) const {
    const lanes_cursor<T, Reads, Line::results> c{a, value, element, channel};
    const auto y = Line::evaluate(c);
    for (std::size_t k = 0; k < y.size(); ++k) {
      store(a.out[k] + element * lanes<T>,
            Ragged && element >= dead.from ? keep(dead.live, y[k]) : y[k]);
    }
  }
};

/// For kernels that yield vectors of channels: (value, element, block).
template <class T, int Reads, class Line>
struct blocked_sink {
  addresses<T, Reads, Line::results> a;

  [[gnu::always_inline]] void operator()(vec<T> value, std::int64_t element, int block) const {
    const blocked_cursor<T, Reads, Line::results> c{a, value, element, block};
    const auto y = Line::evaluate(c);
    for (std::size_t k = 0; k < y.size(); ++k) store(a.out[k] + element * lanes<T>, y[k]);
  }
};

/// For pooling in registers: also stores which corner was the largest, if somebody asks.
template <class T, class Sink, bool Corners>
struct pooled_sink {
  Sink values;
  std::uint16_t* corners;

  template <class Bits>
  [[gnu::always_inline]] void operator()(vec<T> value, const Bits& where, std::int64_t element,
                                         int channel) const {
    values(value, element, channel);
    if constexpr (Corners) {
      for (std::size_t k = 0; k < 4; ++k)
        corners[element * 4 + std::int64_t(k)] = static_cast<std::uint16_t>(where[k]);
    }
  }
};

/// For kernels that yield runs of plain results: (value, offset, count), or with row and column.
template <class T, int Reads, class Line>
struct plain_sink {
  addresses<T, Reads, Line::results> a;

  /// Where the kernel may store its results itself, since nothing follows from them.
  T* target() const requires(Line::is_accumulated) { return a.out[0]; }

  void prefetch(int height, int width, std::int64_t offset, std::int64_t row_step) const {
    constexpr unsigned read = Line::reads_in_step;
    for (int i = 0; i < height; ++i, offset += row_step) {
      for (int j = 0; j < width; j += 64 / int(sizeof(T))) {
        for (std::size_t k = 0; k < a.in.size(); ++k) {
          if (read >> k & 1u) __builtin_prefetch(a.in[k] + offset + j);
        }
        for (T* to : a.out) __builtin_prefetch(to + offset + j, 1);
      }
    }
  }

  [[gnu::always_inline]] void operator()(vec<T> value, std::int64_t offset, int count) const {
    (*this)(value, offset, 0, 0, count);
  }
  [[gnu::always_inline]] void operator()(vec<T> value, std::int64_t offset, int row, int column,
                                         int count) const {
    const plain_cursor<T, Reads, Line::results> c{a, value, offset, row, column, count};
    const auto y = Line::evaluate(c);
    for (std::size_t k = 0; k < y.size(); ++k) {
      if (count == lanes<T>)
        store_unaligned(a.out[k] + offset, y[k]);
      else
        store_first(a.out[k] + offset, count, y[k]);
    }
  }
};

}  // namespace cella::cpu
