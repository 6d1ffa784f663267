// Row by row: sums of a row, numbers that follow from them, then the elementwise operations that
// use both. A row is read from memory once; the further passes over it find it in a cache.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/expression.hpp>
#include <cella/backend/work_range.hpp>

namespace cella::cpu {

struct row_extents {
  std::int64_t rows{}, width{};
};

/// How a number of a row is computed: the sum of a term over the row, or a term of other numbers.
template <class Term, bool Sums>
struct row_term_of {
  using term = Term;
  static constexpr bool sums = Sums;
};
/// What is written: `Each` element of the row, or one number for it.
template <class Term, bool Each>
struct row_output {
  using term = Term;
  static constexpr bool each = Each;
};
template <class... Terms>
struct row_terms {};

/// What terms see of a row.
template <class T, int Reads, int Writes, int Numbers>
struct row_cursor : plain_cursor<T, Reads, Writes> {
  const std::array<vec<T>, std::size_t(Numbers)>& numbers;
};

/// Elements of one unit of work, about.
inline constexpr std::int64_t row_unit = 8192;
constexpr std::int64_t rows_of_unit(const row_extents& e) {
  return std::max<std::int64_t>(1, row_unit / e.width);
}
/// Units of work: some rows each.
constexpr int row_units(const row_extents& e) {
  return int((e.rows + rows_of_unit(e) - 1) / rows_of_unit(e));
}

/// Numbers are computed in their order. All outputs of some elements are computed before the first
/// is stored.
template <class T, int Reads, int Writes, class... Numbers, class... Outputs>
[[gnu::noinline]] void row_loops(work_range units, const row_extents& e,
                                 const addresses<T, Reads, Writes>& a, row_terms<Numbers...>,
                                 row_terms<Outputs...>) {
  constexpr int L = lanes<T>, numbers = int(sizeof...(Numbers));
  using cursor = row_cursor<T, Reads, Writes, numbers>;
  const int whole = int(e.width / L * L), rest = int(e.width) - whole;
  const std::int64_t end = std::min(e.rows, units.last * rows_of_unit(e));
  for (std::int64_t row = units.first * rows_of_unit(e); row < end; ++row) {
    const std::int64_t first = row * e.width;
    std::array<vec<T>, std::size_t(numbers)> known;
    const auto at = [&](int i, int count) __attribute__((always_inline)) {
      return cursor{{a, vec<T>{}, first + i, int(row), i, count}, known};
    };
    const auto find = [&]<class Number>(Number) __attribute__((always_inline)) {
      if constexpr (Number::sums) {
        vec<T> total(T(0));
        for (int i = 0; i < whole; i += L) total = total + Number::term::evaluate(at(i, L));
        if (rest) total = total + keep(first_bits(rest), Number::term::evaluate(at(whole, rest)));
        return vec<T>(sum(total));
      } else {
        return Number::term::evaluate(at(0, 1));
      }
    };
    std::size_t k = 0;
    ((known[k++] = find(Numbers{})), ...);

    const auto write = [&](int i, int count) __attribute__((always_inline)) {
      const cursor c = at(i, count);
      [&]<std::size_t... O>(std::index_sequence<O...>) {
        const auto value = [&]<class Output>(Output) __attribute__((always_inline)) {
          if constexpr (Output::each)
            return Output::term::evaluate(c);
          else
            return vec<T>{};
        };
        const std::array<vec<T>, sizeof...(Outputs)> y{value(Outputs{})...};
        const auto put = [&]<class Output>(Output, T * to, vec<T> v)
            __attribute__((always_inline)) {
          if constexpr (!Output::each) return;
          if (count == L)
            store_unaligned(to + first + i, v);
          else
            store_first(to + first + i, count, v);
        };
        (put(Outputs{}, a.out[O], y[O]), ...);
      }
      (std::index_sequence_for<Outputs...>{});
    };
    for (int i = 0; i < whole; i += L) write(i, L);
    if (rest) write(whole, rest);
    std::size_t o = 0;
    const auto put_number = [&]<class Output>(Output) {
      if constexpr (!Output::each) store_first(a.out[o] + row, 1, Output::term::evaluate(at(0, 1)));
      ++o;
    };
    (put_number(Outputs{}), ...);
  }
}

}  // namespace cella::cpu
