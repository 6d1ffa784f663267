// A fused group as a straight line of terms: each of its values is computed once, in a register,
// however many others follow from it.
#pragma once

#include <array>
#include <bit>
#include <cella/backend/cpu/simd/fast_math.hpp>
#include <cella/backend/cpu/simd/storage.hpp>
#include <cella/plan/plan.hpp>
#include <cstdint>
#include <tuple>
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
/// Operand `K` of the group, read from memory in its own way. It is stored as S; void: in the type
/// that is computed in.
template <int K, access How, class S = void>
struct operand_at {
  [[gnu::always_inline]] static auto evaluate(const auto& c) {
    return c.template read<K, How, S>();
  }
};
/// A product of `Depth` summands of operands `K` and `K` + 1, `LeftStep` and `RightStep` elements
/// apart.
template <int K, access Left, access Right, int Depth, std::int64_t LeftStep,
          std::int64_t RightStep>
struct short_product {
  [[gnu::always_inline]] static auto evaluate(const auto& c) {
    auto sum = left(c, 0) * right(c, 0);
#pragma GCC unroll 8
    for (int k = 1; k < Depth; ++k) sum = multiply_add(left(c, k), right(c, k), sum);
    return sum;
  }

 private:
  [[gnu::always_inline]] static auto left(const auto& c, int k) {
    return c.template read<K, Left, void>(k * LeftStep);
  }
  [[gnu::always_inline]] static auto right(const auto& c, int k) {
    return c.template read<K + 1, Right, void>(k * RightStep);
  }
};
/// A value of type S, which memory would hold.
template <class S, int In>
struct rounded {
  [[gnu::always_inline]] static auto evaluate(const auto&, const auto& before) {
    return rounded_to<S>(before.template at<In>());
  }
};
/// A conversion between the type that is computed in and one of 16 bits, which is held in it, too.
template <int In>
struct converted {
  [[gnu::always_inline]] static auto evaluate(const auto&, const auto& before) {
    return before.template at<In>();
  }
};
/// Number `K` of the row that is computed.
template <int K>
struct row_number {
  [[gnu::always_inline]] static auto evaluate(const auto& c) { return c.numbers[K]; }
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
template <int K, access How, class S>
inline constexpr unsigned reads_of_term<operand_at<K, How, S>> = 1u << K;
template <int K, access Left, access Right, int Depth, std::int64_t LeftStep,
          std::int64_t RightStep>
inline constexpr unsigned reads_of_term<short_product<K, Left, Right, Depth, LeftStep, RightStep>> =
    3u << K;
/// The same, if the term reads at the element that is computed.
template <class Term>
inline constexpr unsigned reads_in_step = 0;
template <int K, class S>
inline constexpr unsigned reads_in_step<operand_at<K, access::same, S>> = 1u << K;
/// Whether a term sums up a product.
template <class Term>
inline constexpr bool sums_up = false;
template <int K, access Left, access Right, int Depth, std::int64_t LeftStep,
          std::int64_t RightStep>
inline constexpr bool sums_up<short_product<K, Left, Right, Depth, LeftStep, RightStep>> = true;
/// Whether a term draws random numbers.
template <class Term>
inline constexpr bool draws = false;
template <int K, class S>
inline constexpr bool draws<operand_at<K, access::drawn, S>> = true;

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
/// The value of term K, which memory holds as S; void: in the type that is computed in. `Past`: it
/// is stored past the caches.
template <int K, class S = void, bool Past = false>
struct result {
  static constexpr int place = K;
  static constexpr bool past_caches = Past;
  using stored = S;
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

/// Terms in the order of their computation, and which of them are results. Lines with the same
/// operations are the same type, whatever program they come from: kernels are compiled once.
template <class Terms, class... Results>
struct straight_line;
template <class... Terms, class... Results>
struct straight_line<terms<Terms...>, Results...> {
  static constexpr int length = sizeof...(Terms);
  static constexpr int results = sizeof...(Results);
  /// Which operands are read, as bits; and which of them at the element that is computed.
  static constexpr unsigned reads = (0u | ... | reads_of_term<Terms>);
  static constexpr unsigned reads_in_step = (0u | ... | cpu::reads_in_step<Terms>);
  /// Which results are stored past the caches.
  [[maybe_unused]] static constexpr std::array past_caches{Results::past_caches...};
  /// Whether random numbers are drawn.
  static constexpr bool draws = (false || ... || cpu::draws<Terms>);
  static constexpr bool sums_up = (false || ... || cpu::sums_up<Terms>);
  /// The anchor's value itself.
  static constexpr bool is_accumulated =
      std::is_same_v<straight_line, straight_line<terms<accumulated>, result<0>>>;

  /// The results at the element of cursor `c`, before they are rounded to what memory holds.
  [[gnu::always_inline]] static auto evaluate(const auto& c) {
    using vector = decltype(c.number(0.0));
    return evaluate<vector>(c, std::make_integer_sequence<int, length>{});
  }
  /// Stores result K at `offset`: a whole vector, or its first `count` elements.
  template <std::size_t K, bool Whole, class T>
  [[gnu::always_inline]] static void store_result(T* to, std::int64_t offset, vec<T> y, int count) {
    using result = std::tuple_element_t<K, std::tuple<Results...>>;
    auto* const p = elements_at<typename result::stored>(to) + offset;
    if constexpr (!Whole)
      store_stored(p, y, count);
    else if constexpr (result::past_caches)
      cpu::store_past_caches(p, y);
    else
      store_stored(p, y);
  }
  /// Stores whole vectors; result k belongs at offset(k), which is aligned.
  template <class T, class Offset>
  [[gnu::always_inline]] static void store_vectors(const std::array<T*, sizeof...(Results)>& to,
                                                   const std::array<vec<T>, sizeof...(Results)>& y,
                                                   Offset offset) {
    std::size_t k = 0;
    const auto put = [&]<class Result>(Result) __attribute__((always_inline)) {
      if constexpr (std::is_void_v<typename Result::stored>)
        store_vector<Result::past_caches>(to[k] + offset(k), y[k]);
      else
        store_stored(elements_at<typename Result::stored>(to[k]) + offset(k), y[k]);
      ++k;
    };
    (put(Results{}), ...);
  }
  /// Stores the first `count` elements of each result, at offset(k).
  template <class T, class Offset>
  [[gnu::always_inline]] static void store(const std::array<T*, sizeof...(Results)>& to,
                                           const std::array<vec<T>, sizeof...(Results)>& y,
                                           int count, Offset offset) {
    std::size_t k = 0;
    const auto put = [&]<class Result>(Result) __attribute__((always_inline)) {
      auto* const p = elements_at<typename Result::stored>(to[k]) + offset(k);
      if (count != lanes<T>)
        store_stored(p, y[k], count);
      else if constexpr (Result::past_caches)
        cpu::store_past_caches(p, y[k]);
      else
        store_stored(p, y[k]);
      ++k;
    };
    (put(Results{}), ...);
  }

 private:
  template <class V, int... I>
  [[gnu::always_inline]] static auto evaluate(const auto& c, std::integer_sequence<int, I...>) {
    line_values<V, length> v;
    (set<I, Terms>(v, c), ...);
    return std::array<V, sizeof...(Results)>{v.template at<Results::place>()...};
  }
  template <int K, class Term>
  [[gnu::always_inline]] static void set(auto& v, const auto& c) {
    if constexpr (requires { Term::evaluate(c); })
      v.template set<K>(Term::evaluate(c));
    else
      v.template set<K>(Term::evaluate(c, v));
  }
};

}  // namespace cella::cpu
