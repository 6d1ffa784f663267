// Fused groups as expression templates: the operations of a group, lifted from the graph into a
// type that is evaluated in registers.
#pragma once

#include <array>
#include <bit>
#include <cella/backend/cpu/math.hpp>
#include <cella/backend/cpu/random_numbers.hpp>
#include <cella/backend/cpu/storage.hpp>
#include <cella/ops/array.hpp>
#include <cella/passes/plan.hpp>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace cella::cpu {

// ---- the terms of an expression

/// The anchor's value at this element.
struct accumulated {
  [[gnu::always_inline]] static auto evaluate(const auto& c) { return c.value; }
};
/// Operand `K` of the group, read from memory in its own way. It is stored as S; void: in the type
/// that is computed in.
template <int K, access How, class S = void>
struct operand_at {
  [[gnu::always_inline]] static auto evaluate(const auto& c) {
    return c.template read<K, How, S>();
  }
};
/// A value of type S, which memory would hold.
template <class S, class Term>
struct rounded {
  [[gnu::always_inline]] static auto evaluate(const auto& c) {
    return rounded_to<S>(Term::evaluate(c));
  }
};
/// A number, by the bits of its double.
template <std::uint64_t Bits>
struct literal {
  [[gnu::always_inline]] static auto evaluate(const auto& c) {
    return c.number(std::bit_cast<double>(Bits));
  }
};
template <class Op, class... Terms>
struct expr {
  [[gnu::always_inline]] static auto evaluate(const auto& c) {
    if constexpr (requires { vector_form<Op>::apply(Terms::evaluate(c)...); })
      return vector_form<Op>::apply(Terms::evaluate(c)...);
    else
      return Op::apply(Terms::evaluate(c)...);
  }
};
template <class Op, class... Terms>
struct expr<fast<Op>, Terms...> {
  [[gnu::always_inline]] static auto evaluate(const auto& c) {
    if constexpr (requires { vector_form<fast<Op>>::apply(Terms::evaluate(c)...); })
      return vector_form<fast<Op>>::apply(Terms::evaluate(c)...);
    else
      return expr<Op, Terms...>::evaluate(c);
  }
};
/// An operation with options, which are those of node N of program P.
template <class Op, class P, node_id N, class... Terms>
struct expr_with_options {
  [[gnu::always_inline]] static auto evaluate(const auto& c) {
    constexpr auto options =
        P::graph.nodes[std::size_t(N)].attributes.template as<typename Op::options>();
    return Op::apply(options, Terms::evaluate(c)...);
  }
};

/// A value of 16 bits in the type that is computed in: stored as that.
template <class Term>
struct widened {
  [[gnu::always_inline]] static auto evaluate(const auto& c) { return Term::evaluate(c); }
};

/// Which operands a term reads at the element that is computed, as bits.
template <class Term>
inline constexpr unsigned reads_in_step = 0;
template <int K, class S>
inline constexpr unsigned reads_in_step<operand_at<K, access::same, S>> = 1u << K;
template <class S, class Term>
inline constexpr unsigned reads_in_step<rounded<S, Term>> = reads_in_step<Term>;
template <class Term>
inline constexpr unsigned reads_in_step<widened<Term>> = reads_in_step<Term>;
template <class Op, class... Terms>
inline constexpr unsigned reads_in_step<expr<Op, Terms...>> = (0u | ... | reads_in_step<Terms>);
template <class Op, class P, node_id N, class... Terms>
inline constexpr unsigned reads_in_step<expr_with_options<Op, P, N, Terms...>> =
    (0u | ... | reads_in_step<Terms>);

/// Which operands a term reads in any way, as bits.
template <class Term>
inline constexpr unsigned reads_of = 0;
template <int K, access How, class S>
inline constexpr unsigned reads_of<operand_at<K, How, S>> = 1u << K;
template <class S, class Term>
inline constexpr unsigned reads_of<rounded<S, Term>> = reads_of<Term>;
template <class Term>
inline constexpr unsigned reads_of<widened<Term>> = reads_of<Term>;
template <class Op, class... Terms>
inline constexpr unsigned reads_of<expr<Op, Terms...>> = (0u | ... | reads_of<Terms>);
template <class Op, class P, node_id N, class... Terms>
inline constexpr unsigned reads_of<expr_with_options<Op, P, N, Terms...>> = (0u | ... |
                                                                             reads_of<Terms>);

// ---- lifting

/// The C++ type of a storage-only element type; void of others.
template <dtype D>
using storage_type =
    typename std::conditional_t<is_storage_only(D), cella::detail::type_of_dtype<D>,
                                std::type_identity<void>>::type;
/// A term as node of element type D: rounded where that says so.
template <dtype D, class Term>
using as_element = std::type_identity<
    std::conditional_t<is_storage_only(D), rounded<storage_type<D>, Term>, Term>>;

/// The expression that computes node N in step S of program P.
template <class P, int S, node_id N>
consteval auto lift() {
  constexpr const plan_step& s = P::plan.steps[std::size_t(S)];
  constexpr const node& n = P::graph.nodes[std::size_t(N)];
  constexpr dtype E = P::graph.nodes[std::size_t(N)].type.element;
  constexpr int k = s.find_read(N);
  if constexpr (N == s.accumulated && s.kind != step_kind::elementwise) {
    return as_element<E, accumulated>{};
  } else if constexpr (k >= 0) {
    return std::type_identity<operand_at<k, s.reads[std::size_t(k)].how, storage_type<E>>>{};
  } else if constexpr (is<constant_op>(n)) {
    constexpr double value = n.attributes.template as<constant_op::options>().value;
    return as_element<E, literal<std::bit_cast<std::uint64_t>(value)>>{};
  } else if constexpr (is<cast_op>(n)) {
    using from = typename decltype(lift<P, S, P::graph.operand(N, 0)>())::type;
    return as_element<E, widened<from>>{};
  } else if constexpr (!n.op->pointwise) {
    return lift<P, S, P::graph.operand(N, 0)>();  // a reshape
  } else {
    using op = op_of<P::graph.nodes[std::size_t(N)].op>;
    return []<std::size_t... I>(std::index_sequence<I...>) {
      if constexpr (requires { typename op::options; }) {
        return as_element<
            E,
            expr_with_options<
                op, P, N, typename decltype(lift<P, S, P::graph.operand(N, int(I))>())::type...>>{};
      } else {
        using form = std::conditional_t<P::root::fast_math, fast<op>, op>;
        return as_element<
            E, expr<form, typename decltype(lift<P, S, P::graph.operand(N, int(I))>())::type...>>{};
      }
    }
    (std::make_index_sequence<std::size_t(n.operand_count)>{});
  }
}
template <class P, int S, node_id N>
using lifted = typename decltype(lift<P, S, N>())::type;

// ---- where expressions read and write

/// Random numbers at `element` and following, of the stream whose key is operand K at `p`.
template <int K, class T>
[[gnu::always_inline]] inline vec<T> drawn_at(const void* p, std::int64_t element) {
  std::uint64_t key;
  std::memcpy(&key, p, sizeof key);
  return uniform_vector<T, K>(key, element);
}

/// Addresses of the values that a group reads and writes. What is stored in another type than T
/// lies there all the same.
template <class T, int Reads, int Writes>
struct addresses {
  std::array<const T*, std::size_t(Reads)> in{};
  std::array<T*, std::size_t(Writes)> out{};
};

/// An address as that of elements of type S; void: as it is.
template <class S, class T>
[[gnu::always_inline]] inline auto elements_at(T* p) {
  if constexpr (std::is_void_v<S>)
    return p;
  else if constexpr (std::is_const_v<T>)
    return reinterpret_cast<const S*>(p);
  else
    return reinterpret_cast<S*>(p);
}

/// How memory holds the values of a term: of which type, and what is rounded to it.
template <class Term>
struct in_memory {
  using type = void;
  using term = Term;
};
template <class S, class Term>
struct in_memory<rounded<S, Term>> {
  using type = S;
  using term = Term;
};
/// The values of all outputs, before they are rounded to what memory holds.
template <class T, class... Outputs>
[[gnu::always_inline]] inline std::array<vec<T>, sizeof...(Outputs)> values_of(const auto& c) {
  return {in_memory<Outputs>::term::evaluate(c)...};
}
/// Stores the first `count` elements of each output, at offset(k).
template <class... Outputs, class T, class Offset>
[[gnu::always_inline]] inline void store_outputs(const std::array<T*, sizeof...(Outputs)>& to,
                                                 const std::array<vec<T>, sizeof...(Outputs)>& y,
                                                 int count, Offset offset) {
  std::size_t k = 0;
  auto put = [&](auto* p) __attribute__((always_inline)) {
    if (count == lanes<T>)
      store_stored(p + offset(k), y[k]);
    else
      store_stored(p + offset(k), y[k], count);
    ++k;
  };
  (put(elements_at<typename in_memory<Outputs>::type>(to[k])), ...);
}

/// What terms see of a kernel whose results are lane vectors (the batch in the lanes).
template <class T, int Reads, int Writes>
struct lanes_cursor {
  const addresses<T, Reads, Writes>& a;
  vec<T> value;
  std::int64_t element;  // lane vector of the result
  int channel;

  vec<T> number(double x) const { return vec<T>(static_cast<T>(x)); }
  template <int K, access How, class S>
  vec<T> read() const {
    static_assert(std::is_void_v<S>);
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
  template <int K, access How, class S>
  vec<T> read() const {
    const auto* p = elements_at<S>(a.in[std::size_t(K)]);
    if constexpr (How == access::same)
      return some(p + offset);
    else if constexpr (How == access::row)
      return vec<T>(static_cast<T>(p[row]));
    else if constexpr (How == access::column)
      return some(p + column);
    else if constexpr (How == access::drawn)
      return drawn_at<K, T>(p, offset);
    else
      return vec<T>(static_cast<T>(*p));
  }
  vec<T> some(const auto* p) const {
    return count == lanes<T> ? load_stored<T>(p) : load_stored<T>(p, count);
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
  template <int K, access How, class S>
  vec<T> read() const {
    static_assert(std::is_void_v<S>);
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
template <class T, int Reads, bool Ragged, class... Outputs>
struct lanes_sink {
  addresses<T, Reads, int(sizeof...(Outputs))> a;
  dead_lanes dead{};

  [[gnu::always_inline]] void operator()(vec<T> value, std::int64_t element, int channel) const {
    const lanes_cursor<T, Reads, int(sizeof...(Outputs))> c{a, value, element, channel};
    const std::array<vec<T>, sizeof...(Outputs)> y{Outputs::evaluate(c)...};
    for (std::size_t k = 0; k < y.size(); ++k) {
      store(a.out[k] + element * lanes<T>,
            Ragged && element >= dead.from ? keep(dead.live, y[k]) : y[k]);
    }
  }
};

/// For kernels that yield vectors of channels: (value, element, block).
template <class T, int Reads, class... Outputs>
struct blocked_sink {
  addresses<T, Reads, int(sizeof...(Outputs))> a;

  [[gnu::always_inline]] void operator()(vec<T> value, std::int64_t element, int block) const {
    const blocked_cursor<T, Reads, int(sizeof...(Outputs))> c{a, value, element, block};
    const std::array<vec<T>, sizeof...(Outputs)> y{Outputs::evaluate(c)...};
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
template <class T, int Reads, class... Outputs>
struct plain_sink {
  addresses<T, Reads, int(sizeof...(Outputs))> a;

  /// Where the kernel may store its results itself, since nothing follows from them.
  T* target() const
      requires(sizeof...(Outputs) == 1 && (std::is_same_v<Outputs, accumulated> && ...)) {
    return a.out[0];
  }

  void prefetch(int height, int width, std::int64_t offset, std::int64_t row_step) const {
    constexpr unsigned read = (0u | ... | reads_in_step<Outputs>);
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
    const plain_cursor<T, Reads, int(sizeof...(Outputs))> c{a, value, offset, row, column, count};
    const auto y = values_of<T, Outputs...>(c);
    store_outputs<Outputs...>(a.out, y, count, [&](std::size_t) { return offset; });
  }
};

}  // namespace cella::cpu
