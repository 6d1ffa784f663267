// Pointwise operations over blocks of vectors, found by their description: the opcodes of lines
// that are known at run time only.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/simd/math.hpp>
#include <cella/backend/cpu/simd/storage.hpp>
#include <cella/ops/list.hpp>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace cella::cpu {

/// A block of vectors in rows. Vectors of an operand are `step` elements apart: lanes<T>, or 0 for
/// one vector that stands for all of its row; its rows are `row` elements apart, or 0.
struct block_extents {
  int rows{}, vectors{};
};
template <class T>
struct block_operand {
  const T* at{};
  std::int64_t step{}, row{};
};
template <class T>
struct block_result {
  T* at{};
  std::int64_t row{};
};

/// Computes a block (of any alignment) from those of the operands. Truth values are numbers, 1 and
/// 0. A result may lie where an operand does.
template <class T>
using opcode = void (*)(const attributes& options, const block_result<T>& to,
                        const block_operand<T>* a, const block_operand<T>* b,
                        const block_operand<T>* c, block_extents n);

namespace detail {

template <class T>
[[gnu::always_inline]] inline vec<T> as_numbers(vec<T> v) {
  return v;
}
template <class T>
[[gnu::always_inline]] inline vec<T> as_numbers(typename vec<T>::batch_bool_type truth) {
  return xsimd::select(truth, vec<T>(T(1)), vec<T>(T(0)));
}

/// Op with its options, if it has any, in the form that kernels have of it.
template <class Op, class... V>
[[gnu::always_inline]] inline auto apply_to_vectors([[maybe_unused]] const attributes& options,
                                                    const V&... v) {
  if constexpr (requires { typename Op::options; })
    return Op::apply(options.as<typename Op::options>(), v...);
  else if constexpr (requires { vector_form<Op>::apply(v...); })
    return vector_form<Op>::apply(v...);
  else
    return Op::apply(v...);
}

/// Stores f(vectors of `Arity` operands...).
template <int Arity, class T, class F>
[[gnu::always_inline]] inline void for_block(const block_result<T>& to,
                                             std::array<block_operand<T>, 3> in, block_extents n,
                                             F f) {
  constexpr int L = lanes<T>;
  T* at = to.at;
  const std::int64_t row = to.row;
  [&]<std::size_t... K>(std::index_sequence<K...>) __attribute__((always_inline)) {
    for (int r = 0; r < n.rows; ++r, at += row) {
      for (int i = 0; i < n.vectors; ++i)
        store_unaligned(at + i * L, f(load_unaligned(in[K].at + i * in[K].step)...));
      ((in[K].at += in[K].row), ...);
    }
  }
  (std::make_index_sequence<std::size_t(Arity)>{});
}

/// Bit k of `Truths`: operand k is a truth value.
template <class T, class Op, int Arity, unsigned Truths>
void run_opcode(const attributes& options, const block_result<T>& to, const block_operand<T>* a,
                const block_operand<T>* b, const block_operand<T>* c, block_extents n) {
  // A copy: its numbers are made once, since nothing that is stored may change it.
  const attributes given = options;
  const auto operand =
      []<int K>(std::integral_constant<int, K>, const vec<T>& v) __attribute__((always_inline)) {
    if constexpr (Truths >> K & 1u)
      return v > vec<T>(T(0));
    else
      return v;
  };
  for_block<Arity>(
      to, {*a, *b, *c}, n, [&](const auto&... v) __attribute__((always_inline)) {
        return [&]<int... K>(std::integer_sequence<int, K...>) __attribute__((always_inline)) {
          return as_numbers<T>(
              apply_to_vectors<Op>(given, operand(std::integral_constant<int, K>{}, v)...));
        }
        (std::make_integer_sequence<int, Arity>{});
      });
}

/// How many operands the function of an operation has, as numbers have it: asking with vectors
/// would instantiate the SIMD library's functions, of which some need an optimizing compiler.
template <class Op, class... V>
concept takes = requires(V... v) {
  Op::apply(v...);
}
|| requires(typename Op::options o, V... v) { Op::apply(o, v...); };
template <class Op, class T>
constexpr int arity_of() {
  return takes<Op, T> ? 1 : takes<Op, T, T> ? 2 : 3;
}
/// The operands that are truth values.
template <class Op>
inline constexpr unsigned truths_of = 0;
template <>
inline constexpr unsigned truths_of<logical_and_op> = 0b11;
template <>
inline constexpr unsigned truths_of<logical_or_op> = 0b11;
template <>
inline constexpr unsigned truths_of<logical_not_op> = 0b1;
template <>
inline constexpr unsigned truths_of<select_op> = 0b1;
/// Operations that compare numbers and truth values alike.
template <class Op>
inline constexpr bool compares_truths =
    std::is_same_v<Op, equal_op> || std::is_same_v<Op, not_equal_op>;

template <class T>
struct opcode_entry {
  const op_info* op{};
  opcode<T> run{};
  unsigned truths{};
};

template <class T>
inline constexpr auto opcode_table = [] {
  constexpr std::size_t count = [] {
    std::size_t n = 0;
    for (const op_info* op : all_operations::infos) n += op->pointwise;
    all_operations::for_each([&]<class Op>() { n += compares_truths<Op>; });
    return n;
  }();
  std::array<opcode_entry<T>, count> table{};
  std::size_t n = 0;
  all_operations::for_each([&]<class Op>() {
    if constexpr (info_of<Op>.pointwise) {
      constexpr int arity = arity_of<Op, T>();
      table[n++] = {&info_of<Op>, &run_opcode<T, Op, arity, truths_of<Op>>, truths_of<Op>};
      if constexpr (compares_truths<Op>)
        table[n++] = {&info_of<Op>, &run_opcode<T, Op, arity, 0b11>, 0b11};
    }
  });
  return table;
}();

}  // namespace detail

/// The opcode of operation `op` on operands of which `truths` are truth values; null if there is
/// none: for operations of the user's own, and the rarest combinations.
template <class T>
opcode<T> find_opcode(const op_info* op, unsigned truths) {
  for (const auto& entry : detail::opcode_table<T>) {
    if (entry.op == op && entry.truths == truths) return entry.run;
  }
  return nullptr;
}

/// a * b, a * b + c, c - a * b, and a number rounded to what memory holds as S.
template <class T>
void multiply_block(const attributes&, const block_result<T>& to, const block_operand<T>* a,
                    const block_operand<T>* b, const block_operand<T>* c, block_extents n) {
  detail::for_block<2>(to, {*a, *b, *c}, n, [](vec<T> x, vec<T> y) { return x * y; });
}
template <class T>
void multiply_add_block(const attributes&, const block_result<T>& to, const block_operand<T>* a,
                        const block_operand<T>* b, const block_operand<T>* c, block_extents n) {
  detail::for_block<3>(to, {*a, *b, *c}, n,
                       [](vec<T> x, vec<T> y, vec<T> z) { return multiply_add(x, y, z); });
}
template <class T>
void subtract_product_block(const attributes&, const block_result<T>& to, const block_operand<T>* a,
                            const block_operand<T>* b, const block_operand<T>* c, block_extents n) {
  detail::for_block<3>(to, {*a, *b, *c}, n,
                       [](vec<T> x, vec<T> y, vec<T> z) { return multiply_add(-x, y, z); });
}
template <class T, class S>
void round_block(const attributes&, const block_result<T>& to, const block_operand<T>* a,
                 const block_operand<T>* b, const block_operand<T>* c, block_extents n) {
  detail::for_block<1>(to, {*a, *b, *c}, n, [](vec<T> x) { return rounded_to<S>(x); });
}

}  // namespace cella::cpu
