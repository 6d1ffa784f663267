// Instructions of a line that cost less than to store what they yield and load it again: runs of
// them are **chains**, which go over a block a few vectors at a time and keep these in registers.
#pragma once

#include <array>
#include <cella/backend/cpu/bytecode/opcodes.hpp>
#include <cstdint>

namespace cella::cpu {

/// What a link does with the running vectors a, the running truth values t, and operands x and y
/// in memory.
enum class link_code : std::uint8_t {
  none,
  load,                   ///< a = x
  load_truth,             ///< t = x
  store,                  ///< memory = a
  store_truth,            ///< memory = t, as numbers
  add,                    ///< a + x
  subtract,               ///< a - x
  subtract_from,          ///< x - a
  multiply,               ///< a x
  divide,                 ///< a / x
  divide_into,            ///< x / a
  maximum,                ///< of a and x
  maximum_with,           ///< of x and a
  minimum,                ///< of a and x
  minimum_with,           ///< of x and a
  multiply_add,           ///< a x + y
  add_product,            ///< x y + a
  subtract_product,       ///< a - x y
  subtract_product_from,  ///< y - a x
  relu_gradient,          ///< a where x is positive
  negate,
  absolute,
  square,
  square_root,
  floor,
  relu,
  clamp,
  round_f16,
  round_bf16,
  equal,          ///< t: whether a == x
  not_equal,      ///< a != x
  less,           ///< a < x
  less_equal,     ///< a <= x
  greater,        ///< a > x
  greater_equal,  ///< a >= x
  both,           ///< t and x
  either,         ///< t or x
  no_truth,       ///< not t
  choose,         ///< a where t, else x
  choose_other    ///< x where t, else a
};

template <class T>
struct chain_link {
  link_code code{};
  const block_operand<T>*x{}, *y{};  ///< where a store belongs: x
  const attributes* options{};
};

/// The vectors that run at a time. With 16 registers there is room for too few of them: to get from
/// a link to the next takes longer than what it computes, and there are no chains.
template <class T>
inline constexpr int chain_vectors = 8;
inline constexpr bool runs_chains = !few_vector_registers;
/// Tiles of products and convolutions have other extents, 14 x 2 or 7 x 4 vectors: half a tile runs
/// at a time, as two columns of so many vectors.
inline constexpr int chain_column = 7;

namespace detail {

/// Op without options, on vectors.
template <class Op>
struct on_vectors {
  template <class... V>
  [[gnu::always_inline]] auto operator()(const V&... v) const {
    return apply_to_vectors<Op>(attributes{}, v...);
  }
};
/// The same with its two operands the other way round.
template <class Op>
struct swapped {
  template <class V>
  [[gnu::always_inline]] auto operator()(const V& v, const V& w) const {
    return apply_to_vectors<Op>(attributes{}, w, v);
  }
};

/// Calls f(k) for k < N. Not by a loop: g++ keeps arrays in registers only if it sees no loop over
/// them.
template <int N, class F>
[[gnu::always_inline]] inline void for_each_vector(F f) {
  [&]<int... K>(std::integer_sequence<int, K...>) __attribute__((always_inline)) { (f(K), ...); }
  (std::make_integer_sequence<int, N>{});
}

/// Which vectors of a block run together: as many as can, of one row; what is left of a row; some
/// of short rows, of which the last one stands for those that lack; or two columns of a tile.
enum class chain_part { whole, rest, rows, columns };

/// How far places lie apart, in vectors of a row and in rows.
struct chain_step {
  int vectors{}, rows{};
};
/// Where vectors run; of columns, how far the places of one lie apart, and from the other's.
struct chain_place {
  int wide{};  ///< vectors of a row
  int first{}, last{};
  chain_step along{}, apart{};
};

/// Runs the links on vectors of a block, from number `first` on: while there are as many up to
/// `last` as run together, or on these alone, which are fewer. Returns which is next. What this
/// calls is inlined, however much else there is to compile.
template <class T, chain_part Part>
[[gnu::noinline, gnu::flatten]] int run_links(span<const chain_link<T>> links,
                                              const chain_place& of) {
  using V = vec<T>;
  using truth = typename V::batch_bool_type;
  constexpr bool whole = Part == chain_part::whole, of_rows = Part == chain_part::rows,
                 of_columns = Part == chain_part::columns;
  constexpr int L = lanes<T>, N = of_columns ? 2 * chain_column : chain_vectors<T>;
  int first = of.first;
  const int last = of.last;
  const std::int64_t first_row = first / of.wide;
  std::int64_t column = first - first_row * of.wide;
  // Of each vector, its row and where it lies in it; or how far on from the first one.
  std::int64_t row[N], in_row[N];
  if constexpr (of_rows || Part == chain_part::rest) {
    std::int64_t r = first_row, c = of_rows ? column : 0;
    for_each_vector<N>([&](int k) __attribute__((always_inline)) {
      row[k] = r;
      in_row[k] = c * L;
      if (first + k + 1 >= last) return;
      if (++c == of.wide && of_rows) c = 0, ++r;
    });
  }
  // Where vector k of an operand lies; `Beside`: whose vectors lie beside each other.
  const auto place = [&]<bool Beside>(std::bool_constant<Beside>, const block_operand<T>& o, int k)
      __attribute__((always_inline)) {
    const std::int64_t mask = Beside ? -1 : -std::int64_t{o.step != 0};
    if constexpr (of_rows) return o.at + row[k] * o.row + (in_row[k] & -std::int64_t{o.step != 0});
    const T* const at = o.at + first_row * o.row + column * o.step;
    if constexpr (of_columns) {
      const auto distance = [&](const auto& d) { return d.vectors * o.step + d.rows * o.row; };
      return at + k / chain_column * distance(of.apart) + k % chain_column * distance(of.along);
    }
    return at + ((whole ? std::int64_t{k} * L : in_row[k]) & mask);
  };
  constexpr std::true_type beside;
  V a[N];
  truth t[N];
  for_each_vector<N>([&](int k)
                         __attribute__((always_inline)) { t[k] = (a[k] = V(T(0))) > V(T(0)); });
  const chain_link<T>* const end = links.data() + links.size();
  const chain_link<T>* link = links.data();
  while (!whole || first + N <= last) {
    const block_operand<T>& x = *link->x;
    // Calls f(k, operand x of it) for all vectors, of which one may stand for all.
    const auto with_operand = [&](auto f) __attribute__((always_inline)) {
      if (x.step == 0 && (!(of_rows || of_columns) || x.row == 0)) {
        const V same = load_unaligned(place(beside, x, 0));
        for_each_vector<N>([&](int k) __attribute__((always_inline)) { f(k, same); });
      } else {
        for_each_vector<N>([&](int k) __attribute__((always_inline)) {
          f(k, load_unaligned(place(beside, x, k)));
        });
      }
    };
    const auto one = [&](auto& running, auto f) __attribute__((always_inline)) {
      for_each_vector<N>([&](int k) __attribute__((always_inline)) { running[k] = f(running[k]); });
    };
    const auto two = [&](auto f) __attribute__((always_inline)) {
      with_operand([&](int k, const V& v) __attribute__((always_inline)) { a[k] = f(a[k], v); });
    };
    const auto three = [&](auto f) __attribute__((always_inline)) {
      const block_operand<T>& y = *link->y;
      for_each_vector<N>([&](int k) __attribute__((always_inline)) {
        a[k] = f(a[k], load_unaligned(place(std::false_type{}, x, k)),
                 load_unaligned(place(std::false_type{}, y, k)));
      });
    };
    const auto compare = [&](auto f) __attribute__((always_inline)) {
      with_operand([&](int k, const V& v) __attribute__((always_inline)) { t[k] = f(a[k], v); });
    };
    const auto truths = [&](auto f) __attribute__((always_inline)) {
      with_operand([&](int k, const V& v)
                       __attribute__((always_inline)) { t[k] = f(t[k], v > V(T(0))); });
    };
    const auto store_each = [&](auto value) __attribute__((always_inline)) {
      for_each_vector<N>([&](int k) __attribute__((always_inline)) {
        store_unaligned(const_cast<T*>(place(beside, x, k)), value(k));
      });
    };
    switch (link->code) {
      case link_code::none:
        __builtin_unreachable();
      case link_code::load:
        two([](V, V v) { return v; });
        break;
      case link_code::load_truth:
        truths([](truth, truth q) { return q; });
        break;
      case link_code::store:
        store_each([&](int k) { return a[k]; });
        break;
      case link_code::store_truth:
        store_each([&](int k) { return as_numbers<T>(t[k]); });
        break;
      case link_code::add:
        two(on_vectors<add_op>{});
        break;
      case link_code::subtract:
        two(on_vectors<sub_op>{});
        break;
      case link_code::subtract_from:
        two(swapped<sub_op>{});
        break;
      case link_code::multiply:
        two(on_vectors<mul_op>{});
        break;
      case link_code::divide:
        two(on_vectors<div_op>{});
        break;
      case link_code::divide_into:
        two(swapped<div_op>{});
        break;
      case link_code::maximum:
        two(on_vectors<maximum_op>{});
        break;
      case link_code::maximum_with:
        two(swapped<maximum_op>{});
        break;
      case link_code::minimum:
        two(on_vectors<minimum_op>{});
        break;
      case link_code::minimum_with:
        two(swapped<minimum_op>{});
        break;
      case link_code::multiply_add:
        three([](V p, V q, V r) { return multiply_add(p, q, r); });
        break;
      case link_code::add_product:
        three([](V p, V q, V r) { return multiply_add(q, r, p); });
        break;
      case link_code::subtract_product:
        three([](V p, V q, V r) { return multiply_add(-q, r, p); });
        break;
      case link_code::subtract_product_from:
        three([](V p, V q, V r) { return multiply_add(-p, q, r); });
        break;
      case link_code::relu_gradient:
        two(on_vectors<relu_gradient_op>{});
        break;
      case link_code::negate:
        one(a, on_vectors<neg_op>{});
        break;
      case link_code::absolute:
        one(a, on_vectors<abs_op>{});
        break;
      case link_code::square:
        one(a, on_vectors<square_op>{});
        break;
      case link_code::square_root:
        one(a, on_vectors<sqrt_op>{});
        break;
      case link_code::floor:
        one(a, on_vectors<floor_op>{});
        break;
      case link_code::relu:
        one(a, on_vectors<relu_op>{});
        break;
      case link_code::clamp:
        one(a, [&](V v) { return apply_to_vectors<clamp_op>(*link->options, v); });
        break;
      case link_code::round_f16:
        if constexpr (std::is_same_v<T, float>) one(a, [](V v) { return rounded_to<float16>(v); });
        break;
      case link_code::round_bf16:
        if constexpr (std::is_same_v<T, float>) one(a, [](V v) { return rounded_to<bfloat16>(v); });
        break;
      case link_code::equal:
        compare(on_vectors<equal_op>{});
        break;
      case link_code::not_equal:
        compare(on_vectors<not_equal_op>{});
        break;
      case link_code::less:
        compare(on_vectors<less_op>{});
        break;
      case link_code::less_equal:
        compare(on_vectors<less_equal_op>{});
        break;
      case link_code::greater:
        compare(on_vectors<greater_op>{});
        break;
      case link_code::greater_equal:
        compare(on_vectors<greater_equal_op>{});
        break;
      case link_code::both:
        truths([](truth p, truth q) { return p && q; });
        break;
      case link_code::either:
        truths([](truth p, truth q) { return p || q; });
        break;
      case link_code::no_truth:
        one(t, [](truth p) { return !p; });
        break;
      case link_code::choose:
        with_operand([&](int k, const V& v)
                         __attribute__((always_inline)) { a[k] = xsimd::select(t[k], a[k], v); });
        break;
      case link_code::choose_other:
        with_operand([&](int k, const V& v)
                         __attribute__((always_inline)) { a[k] = xsimd::select(t[k], v, a[k]); });
        break;
    }
    if (++link != end) continue;
    if (!whole) return last;
    link = links.data();
    first += N;
    column += N;
  }
  return first;
}

}  // namespace detail

/// Runs a chain on a block.
template <class T>
void run_chain(span<const chain_link<T>> links, block_extents n) {
  constexpr int N = chain_vectors<T>, C = chain_column;
  const int wide = n.vectors, all = n.rows * wide;
  using enum detail::chain_part;
  int first = 0;
  const auto run_columns = [&](detail::chain_step along, detail::chain_step apart) {
    while (first + 2 * C <= all)
      first = detail::run_links<T, columns>(links, {wide, first, first + 2 * C, along, apart});
  };
  if (wide == 1)
    run_columns({0, 1}, {0, C});
  else if (wide == 2)
    run_columns({0, 1}, {1, 0});
  else if (wide == C)
    run_columns({1, 0}, {0, 1});
  else if (wide == 2 * C)
    run_columns({1, 0}, {C, 0});
  if (wide < N && n.rows > 1) {
    for (; first < all; first += N)
      detail::run_links<T, rows>(links, {wide, first, std::min(first + N, all)});
    return;
  }
  while (first < all) {
    const int last = first / wide * wide + wide;
    first = detail::run_links<T, whole>(links, {wide, first, last});
    if (first < last) first = detail::run_links<T, rest>(links, {wide, first, last});
  }
}

}  // namespace cella::cpu
