// Row by row: sums of a row, numbers that follow from them, then the elementwise operations that
// use both. A row is read from memory once; the further passes over it find it in a cache.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/loops/addresses.hpp>
#include <cella/backend/cpu/loops/folds.hpp>
#include <cella/backend/host/work_range.hpp>
#include <utility>

namespace cella::cpu {

struct row_extents {
  std::int64_t rows{}, width{};
  std::int64_t unit_rows = 1;  ///< of one unit of work
  /// Where some reads have a number for each stretch of so many elements: see rows_step. Otherwise
  /// a row is one stretch.
  std::int64_t stretch = width, numbers = 1;
};

/// How a number of a row is computed by a line: as the sum of its value over the row, or from other
/// numbers.
template <class Line, bool Sums>
struct row_number_of {
  using line = Line;
  static constexpr bool sums = Sums;
};
template <class... Numbers>
struct row_numbers {};
/// What is written of a result: each element of the row, one number for the row, or the sum over
/// the rows of a unit of work, [units][width].
enum class row_form { each, once, summed };
/// The line that computes all results, and what is written of each.
template <class Line, row_form... Forms>
struct row_outputs {};

/// What terms see of a row, at `count` elements of it: all lanes where they are `Whole`.
template <class T, int Reads, int Writes, int Numbers, bool Whole>
struct row_cursor {
  const addresses<T, Reads, Writes>& a;
  const std::array<vec<T>, std::size_t(Numbers)>& numbers;
  std::int64_t row, column, element, stretch;
  int count;

  [[gnu::always_inline]] vec<T> number(double x) const { return vec<T>(static_cast<T>(x)); }
  template <int K, access How, class S>
  [[gnu::always_inline]] vec<T> read() const {
    const auto* p = elements_at<S>(a.in[std::size_t(K)]);
    if constexpr (How == access::same)
      return some(p + element);
    else if constexpr (How == access::column)
      return some(p + column);
    else if constexpr (How == access::drawn)
      return drawn_at<K, T>(p, element);
    else if constexpr (How == access::row)
      return vec<T>(static_cast<T>(p[row]));
    else if constexpr (How == access::stretch)
      return vec<T>(static_cast<T>(p[stretch]));
    else
      return vec<T>(static_cast<T>(*p));
  }
  [[gnu::always_inline]] vec<T> some(const auto* p) const {
    if constexpr (Whole)
      return load_stored<T>(p);
    else
      return load_stored<T>(p, count);
  }
};

/// Units of work: some rows each.
constexpr int row_units(const row_extents& e) {
  return int((e.rows + e.unit_rows - 1) / e.unit_rows);
}

/// Whether rows have so few vectors that they can be added one after the other.
template <class T>
constexpr bool few_in_row(const row_extents& e) {
  return e.width <= few_vectors * lanes<T>;
}

/// Numbers are computed in their order. Sums over rows depend on the extents alone. All outputs of
/// some elements are computed before the first is stored. `Few`: few_in_row() says so. `Stretches`:
/// a row has several, or numbers of its own.
template <bool Few = false, bool Stretches = false, class T, int Reads, int Writes,
          class... Numbers, class Line, row_form... Forms>
[[gnu::noinline]] void row_loops(work_range units, const row_extents e,
                                 const addresses<T, Reads, Writes> a, row_numbers<Numbers...>,
                                 row_outputs<Line, Forms...>) {
  static constexpr std::array forms{Forms...};
  constexpr int L = lanes<T>, numbers = int(sizeof...(Numbers));
  // Of one stretch, as a row is unless something has a number for each of several.
  const std::int64_t whole = e.stretch / L * L;
  const int rest = int(e.stretch - whole);
  const std::int64_t end = std::min(e.rows, units.last * e.unit_rows);
  for (std::int64_t row = units.first * e.unit_rows; row < end; ++row) {
    const std::int64_t first = row * e.width, unit = row / e.unit_rows;
    const std::int64_t sums = unit * e.width;
    const bool adds = row > unit * e.unit_rows;  // to the sums of earlier rows
    std::array<vec<T>, std::size_t(numbers)> known;
    std::int64_t stretch = 0;
    const auto at = [&]<bool Whole>(std::int64_t i, int count) __attribute__((always_inline)) {
      return row_cursor<T, Reads, Writes, numbers, Whole>{a,         known,   row,  i,
                                                          first + i, stretch, count};
    };
    const auto for_stretches = [&](auto f) __attribute__((always_inline)) {
      if constexpr (!Stretches) {
        f(0);
      } else {
        stretch = row * (e.width / e.stretch) % e.numbers;
        for (std::int64_t begin = 0; begin < e.width; begin += e.stretch) {
          f(begin);
          if (++stretch == e.numbers) stretch = 0;
        }
      }
    };
    const auto find = [&]<class Number>(Number) __attribute__((always_inline)) {
      using line = typename Number::line;
      if constexpr (Number::sums) {
        long_sum<T> runs;
        vec<T> last(T(0));
        for_stretches([&](std::int64_t begin) __attribute__((always_inline)) {
          const auto term = [&](std::int64_t i) __attribute__((always_inline)) {
            return line::evaluate(at.template operator()<true>(begin + i, L))[0];
          };
          if constexpr (Few) {
            for (std::int64_t i = 0; i < whole; i += L) last = last + term(i);
          } else {
            last = fold_terms<adding, T>(whole, L, term, [&](vec<T> run) { runs.add(run); });
          }
          if (rest) {
            last =
                last + keep(first_bits(rest),
                            line::evaluate(at.template operator()<false>(begin + whole, rest))[0]);
          }
          if constexpr (!Few) runs.add(last);
        });
        return vec<T>(Few ? sum(last) : runs.over_lanes());
      } else {
        return line::evaluate(at.template operator()<false>(0, 1))[0];
      }
    };
    std::size_t k = 0;
    ((known[k++] = find(Numbers{})), ...);

    const auto write = [&]<bool Whole>(std::int64_t i, int count) __attribute__((always_inline)) {
      const auto y = Line::evaluate(at.template operator()<Whole>(i, count));
      const auto put = [&]<std::size_t O>() __attribute__((always_inline)) {
        if constexpr (forms[O] != row_form::once) {
          constexpr bool summed = forms[O] == row_form::summed;
          const std::int64_t to = (summed ? sums : first) + i;
          vec<T> v = y[O];
          if constexpr (summed) {
            if (adds)
              v = v + (Whole ? load_unaligned(a.out[O] + to) : load_first(a.out[O] + to, count));
          }
          Line::template store_result<O, Whole>(a.out[O], to, v, count);
        }
      };
      [&]<std::size_t... O>(std::index_sequence<O...>) __attribute__((always_inline)) {
        (put.template operator()<O>(), ...);
      }
      (std::make_index_sequence<sizeof...(Forms)>{});
    };
    for_stretches([&](std::int64_t begin) __attribute__((always_inline)) {
      for (std::int64_t i = begin; i < begin + whole; i += L) write.template operator()<true>(i, L);
      if (rest) write.template operator()<false>(begin + whole, rest);
    });
    if constexpr (((Forms == row_form::once) || ...)) {
      const auto y = Line::evaluate(at.template operator()<false>(0, 1));
      for (std::size_t o = 0; o < forms.size(); ++o) {
        if (forms[o] == row_form::once) store_first(a.out[o] + row, 1, y[o]);
      }
    }
  }
}

}  // namespace cella::cpu
