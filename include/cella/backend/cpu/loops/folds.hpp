// How many values become one: by sums, by the largest, by the smallest.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/simd/long_sum.hpp>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace cella::cpu {

/// How values are folded into one: from `start` on, in any order, as vectors in runs of at most
/// `sum_run`, which a `total` takes.
struct adding {
  template <class T>
  static constexpr T start = T(0);
  template <class T>
  [[gnu::always_inline]] static vec<T> fold(vec<T> a, vec<T> v) {
    return a + v;
  }
  /// load(0), load(1), ..., `n` vectors.
  template <class T, class Load>
  [[gnu::always_inline]] static vec<T> fold_several(int n, Load load) {
    vec<T> all(start<T>);
#pragma GCC unroll 8
    for (int k = 0; k < n; ++k) all = all + load(k);
    return all;
  }
  template <class T>
  [[gnu::always_inline]] static T over_lanes(vec<T> a) {
    return sum(a);
  }
  template <class T>
  using total = long_sum<T>;
};
/// The largest (or smallest), NaN if one is.
template <bool Largest>
struct extreme {
  /// Whether comparisons yield bits.
#if defined(__AVX512F__)
  static constexpr bool has_masks = true;
#else
  static constexpr bool has_masks = false;
#endif
  template <class T>
  static constexpr T start = (Largest ? T(-1) : T(1)) * std::numeric_limits<T>::infinity();
  template <class T>
  [[gnu::always_inline]] static vec<T> fold(vec<T> a, vec<T> v) {
    if constexpr (has_masks) {
      const unsigned beats = Largest ? greater(v, a) : greater(a, v);
      return select(beats | unordered(v, v), v, a);
    } else {
      // With AVX xsimd 8's v != v is false for NaN.
      return xsimd::select((Largest ? v > a : v < a) || xsimd::isnan(v), v, a);
    }
  }
  /// The same of numbers; either where one is NaN.
  template <class T>
  [[gnu::always_inline]] static vec<T> of_numbers(vec<T> a, vec<T> v) {
    return Largest ? maximum(a, v) : minimum(a, v);
  }
  /// load(0), load(1), ..., `n` vectors. Whether there is a NaN is asked for two at once.
  template <class T, class Load>
  [[gnu::always_inline]] static vec<T> fold_several(int n, Load load) {
    vec<T> all(start<T>);
    unsigned unknown = 0;
#pragma GCC unroll 4
    for (int k = 0; k < n; k += 2) {
      const vec<T> x = load(k), y = k + 1 < n ? load(k + 1) : x;
      all = of_numbers<T>(all, of_numbers<T>(x, y));
      unknown |= unordered(x, y);
    }
    if (unknown) [[unlikely]]
      all = select(unknown, vec<T>(std::numeric_limits<T>::quiet_NaN()), all);
    return all;
  }
  template <class T>
  static T over_lanes(vec<T> a) {
    if (unordered(a, a)) return std::numeric_limits<T>::quiet_NaN();
    return Largest ? largest(a) : -largest(-a);
  }
  template <class T>
  class total {
   public:
    [[gnu::always_inline]] void add(vec<T> run) { best_ = fold<T>(best_, run); }
    vec<T> by_lanes() const { return best_; }
    T over_lanes() const { return extreme::over_lanes<T>(best_); }

   private:
    vec<T> best_ = vec<T>(start<T>);
  };
};
/// The first `count` lanes of v, and what changes nothing in the others.
template <class Fold, class T>
[[gnu::always_inline]] inline vec<T> fold_first(int count, vec<T> v) {
  if constexpr (std::is_same_v<Fold, adding>)
    return keep(first_bits(count), v);
  else
    return select(first_bits(count), v, vec<T>(Fold::template start<T>));
}

/// Folds term(i), a vector, for i = 0, `step`, 2 `step` ... below `end`: take(run) gets all runs
/// but the last, which is returned; a sum's lacks at least one vector. `OneLoop` is slower in a
/// near cache, where short chains want to overlap, and quicker out of it.
template <class Fold, class T, bool OneLoop = false, class Term, class Take>
[[gnu::always_inline]] inline vec<T> fold_terms(std::int64_t end, int step, Term term, Take take) {
  if constexpr (!std::is_same_v<Fold, adding>) {
    // In any order: four that do not wait for each other. Whether there is a NaN is asked for two
    // at once.
    vec<T> runs[4];
    std::fill_n(runs, 4, vec<T>(Fold::template start<T>));
    unsigned unknown = 0;
    std::int64_t i = 0;
    for (const std::int64_t four = 4 * std::int64_t{step}; i + four <= end; i += four) {
      vec<T> x[4];
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        x[k] = term(i + k * step);
        runs[k] = Fold::template of_numbers<T>(runs[k], x[k]);
      }
      unknown |= unordered(x[0], x[1]) | unordered(x[2], x[3]);
    }
    vec<T> all = Fold::template of_numbers<T>(Fold::template of_numbers<T>(runs[0], runs[1]),
                                              Fold::template of_numbers<T>(runs[2], runs[3]));
    all = select(unknown, vec<T>(std::numeric_limits<T>::quiet_NaN()), all);
    for (; i < end; i += step) all = Fold::template fold<T>(all, term(i));
    return all;
  } else if constexpr (OneLoop) {
    vec<T> run(Fold::template start<T>);
    int count = 0;
    for (std::int64_t i = 0; i < end; i += step) {
      run = Fold::template fold<T>(run, term(i));
      if (++count < sum_run) continue;
      take(run);
      run = vec<T>(Fold::template start<T>);
      count = 0;
    }
    return run;
  } else {
    const std::int64_t run_length = std::int64_t{sum_run} * step;
    std::int64_t i = 0;
    while (i + run_length <= end) {
      vec<T> run(Fold::template start<T>);
      for (const std::int64_t last = i + run_length; i < last; i += step)
        run = Fold::template fold<T>(run, term(i));
      take(run);
    }
    vec<T> run(Fold::template start<T>);
    for (; i < end; i += step) run = Fold::template fold<T>(run, term(i));
    return run;
  }
}

}  // namespace cella::cpu
