// Lines that are so simple that what they yield is folded as it is read.
#pragma once

#include <cella/backend/cpu/bytecode/block_runner.hpp>
#include <cella/backend/cpu/loops/folds.hpp>
#include <cstdint>
#include <type_traits>

namespace cella::cpu::detail {

/// What a line computes that reads one value: itself, its square or its size, or the square of its
/// difference from a number of its row.
enum class simple_term { itself, square, size, squared_difference };

/// The value that a simple line reads, where its numbers lie, and which number of the row it is
/// centered at, or which other value; `at` is null for all other lines.
template <class T>
struct simple_line {
  const T* at{};
  const operand_read* read{};
  simple_term term{};
  int center = -1;
  const T* center_at{};
  const operand_read* center_read{};
};
/// That of a line, unless the numbers that it reads have 16 bits.
template <class T>
simple_line<T> simple_line_of(const line_code<T>& line, const plan_step& s,
                              const step_addresses<T>& a) {
  using code = line_code<T>;
  const auto computed = line.instructions();
  // One value, or one less another.
  std::array<int, 2> leaf{};
  std::size_t leaves = 0;
  for (std::size_t v = 0; v < line.values().size(); ++v) {
    const auto from = line.values()[v].from;
    if (from == code::source::computed) continue;
    if (leaves == leaf.size() || (from != code::source::read && from != code::source::row_number))
      return {};
    leaf[leaves++] = int(v);
  }
  const bool centered = leaves == 2;
  if (leaves == 0 || computed.size() > 2 || centered != (computed.size() == 2)) return {};
  const int read = centered ? computed[0].in[0] : leaf[0],
            center = centered ? computed[0].in[1] : -1;
  const auto lies = [&](int v) {
    const auto& x = line.values()[std::size_t(v)];
    return x.from == code::source::read && !is_storage_only(x.stored);
  };
  const auto address = [&](int v) {
    const auto& x = line.values()[std::size_t(v)];
    return a.in[std::size_t(x.index)] + x.further;
  };
  const auto read_of = [&](int v) {
    return &s.reads[std::size_t(line.values()[std::size_t(v)].index)];
  };
  if (!lies(read)) return {};
  simple_line<T> found{address(read), read_of(read)};
  const auto is_of = [&](const auto& i, const op_info* op, int operand) {
    return i.run == find_opcode<T>(op, 0) && i.in[0] == operand;
  };
  if (computed.empty()) return found;
  if (centered) {
    if (center == read || !is_of(computed[0], &info_of<sub_op>, read) ||
        !is_of(computed[1], &info_of<square_op>, computed[0].result))
      return {};
    found.term = simple_term::squared_difference;
    if (line.values()[std::size_t(center)].from == code::source::row_number) {
      found.center = line.values()[std::size_t(center)].index;
    } else if (lies(center)) {
      found.center_at = address(center);
      found.center_read = read_of(center);
    } else {
      return {};
    }
  } else if (is_of(computed[0], &info_of<square_op>, read)) {
    found.term = simple_term::square;
  } else if (is_of(computed[0], &info_of<abs_op>, read)) {
    found.term = simple_term::size;
  } else {
    return {};
  }
  return found;
}
template <simple_term Term, class T>
[[gnu::always_inline]] inline vec<T> term_of(vec<T> x, [[maybe_unused]] vec<T> center) {
  if constexpr (Term == simple_term::square) return x * x;
  if constexpr (Term == simple_term::size) return xsimd::abs(x);
  if constexpr (Term == simple_term::squared_difference) return (x - center) * (x - center);
  return x;
}
/// Calls f(the term as a constant); extrema are of values themselves or of sizes.
template <class Fold, class F>
[[gnu::always_inline]] inline void with_term(simple_term t, F f) {
  using enum simple_term;
  if constexpr (std::is_same_v<Fold, adding>) {
    if (t == square) return f(std::integral_constant<simple_term, square>{});
    if (t == squared_difference)
      return f(std::integral_constant<simple_term, squared_difference>{});
  }
  if (t == size) return f(std::integral_constant<simple_term, size>{});
  f(std::integral_constant<simple_term, itself>{});
}
/// The terms of a row of so many numbers, as runs.
template <class Fold, simple_term Term, class T, class Total>
[[gnu::always_inline]] inline void fold_terms_of_row(const T* row, std::int64_t extent,
                                                     vec<T> center, Total& total) {
  constexpr int L = lanes<T>;
  const std::int64_t whole = extent / L * L;
  const auto of = [&](vec<T> x) __attribute__((always_inline)) { return term_of<Term>(x, center); };
  const auto term = [&](std::int64_t i) __attribute__((always_inline)) {
    // What follows the row, which memory would not be asked for while this one ends. From farther
    // ahead it would come twice, as the processor asks for it by itself.
    __builtin_prefetch(row + i + 256 / sizeof(T));
    return of(load_unaligned(row + i));
  };
  const auto take = [&](vec<T> run) __attribute__((always_inline)) { total.add(run); };
  vec<T> run = fold_terms<Fold, T>(whole, L, term, take);
  if (const int rest = int(extent - whole))
    run = Fold::template fold<T>(run, fold_first<Fold, T>(rest, of(load_first(row + whole, rest))));
  take(run);
}
/// Folds the terms of a row into what others came to.
template <class Fold, class T, class Total>
void fold_simple_row(simple_term t, const T* row, std::int64_t extent, vec<T> center,
                     Total& total) {
  // A sum lies in registers until the row ends.
  std::conditional_t<std::is_same_v<Fold, adding>, Total, Total&> own = total;
  with_term<Fold>(
      t, [&](auto form) __attribute__((always_inline)) {
        fold_terms_of_row<Fold, form()>(row, extent, center, own);
      });
  if constexpr (std::is_same_v<Fold, adding>) total = own;
}

/// Rows of so many numbers, `apart`, and those that their terms are centered at, or null.
template <class T>
struct simple_rows {
  const T* first;
  std::int64_t apart, extent;
  const T* center;
  std::int64_t centers_apart;
};
/// results[i] = the terms of row i, folded, for `count` rows. In a loop of its own: what a row
/// comes to is made while memory brings the next one.
template <class Fold, class T>
[[gnu::noinline]] void fold_simple_rows(simple_term t, const simple_rows<T>& rows, int count,
                                        T* results) {
  with_term<Fold>(
      t, [&](auto form) __attribute__((always_inline)) {
        const T* row = rows.first;
        for (int i = 0; i < count; ++i, row += rows.apart) {
          const vec<T> center(rows.center ? rows.center[i * rows.centers_apart] : T(0));
          typename Fold::template total<T> total;
          fold_terms_of_row<Fold, form()>(row, rows.extent, center, total);
          results[i] = total.over_lanes();
        }
      });
}
/// Columns of a block of rows: to[v] = what it was, and the terms of each row's vector v folded, in
/// runs; if `begins`, these alone.
template <class Fold, class T>
[[gnu::noinline]] void fold_simple_columns(simple_term t, span<const T* const> rows,
                                           const T* center, int columns, bool begins, vec<T>* to) {
  constexpr int L = lanes<T>;
  const int whole = columns / L;
  const auto fold_run = [&](const T* const* row, int count, auto form)
      __attribute__((always_inline)) {
    const auto fold_at = [&](int v, auto get) __attribute__((always_inline)) {
      const std::int64_t at = std::int64_t{v} * L;
      vec<T> middle(T(0));
      if constexpr (form() == simple_term::squared_difference) middle = get(center + at);
      const vec<T> run = Fold::template fold_several<T>(
          count, [&](int k) __attribute__((always_inline)) {
            return term_of<form()>(get(row[k] + at), middle);
          });
      to[v] = begins ? run : Fold::template fold<T>(to[v], run);
    };
    for (int v = 0; v < whole; ++v)
      fold_at(
          v, [](const T* at) __attribute__((always_inline)) { return load_unaligned(at); });
    if (const int rest = columns % L)
      fold_at(
          whole, [&](const T* at) __attribute__((always_inline)) { return load_first(at, rest); });
    begins = false;
  };
  with_term<Fold>(
      t, [&](auto form) __attribute__((always_inline)) {
        const T* const* row = rows.data();
        auto left = int(rows.size());
        for (; left >= sum_run; row += sum_run, left -= sum_run) fold_run(row, sum_run, form);
        if (left > 0) fold_run(row, left, form);
      });
}

}  // namespace cella::cpu::detail
