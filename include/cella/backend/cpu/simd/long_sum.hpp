// Sums of any length. One accumulator per lane loses digits: in single precision the mean of 10^7
// numbers near 1000 would be off by one percent. So numbers are added in runs, runs in blocks, and
// blocks in double precision, at the cost of a few instructions for each 64 vectors.
#pragma once

#include <cella/backend/cpu/simd/simd.hpp>
#include <type_traits>

namespace cella::cpu {

/// Vectors of a run, and runs of a block. An element takes part in 7 roundings of its run and 7 of
/// its block, then in one of the result: a sum of positive numbers is right to 15 / 2^24 = 9e-7 in
/// single precision, whatever its length.
inline constexpr int sum_run = 8, sum_block = 8;
/// As many vectors may be added one after the other, and then their lanes, where that is quicker.
inline constexpr int few_vectors = 12;

/// Sums of the lanes in double precision.
template <class T>
class wide_sum {
 public:
  wide_sum() = default;
  [[gnu::always_inline]] explicit wide_sum(vec<T> first) : total_(widened(first)) {}

  [[gnu::always_inline]] friend wide_sum operator+(wide_sum a, vec<T> v) {
    const lanes_in_double w = widened(v);
    if constexpr (single) {
      a.total_.low = a.total_.low + w.low;
      a.total_.high = a.total_.high + w.high;
    } else {
      a.total_ = a.total_ + w;
    }
    return a;
  }
  /// Each lane, rounded.
  [[gnu::always_inline]] vec<T> by_lanes() const {
    if constexpr (single)
      return narrow(total_);
    else
      return total_;
  }
  /// The sum of the lanes, rounded.
  [[gnu::always_inline]] T over_lanes() const {
    if constexpr (single)
      return static_cast<T>(sum(total_.low + total_.high));
    else
      return sum(total_);
  }

 private:
  static constexpr bool single = std::is_same_v<T, float>;
  using lanes_in_double = std::conditional_t<single, wide_lanes, vec<double>>;
  [[gnu::always_inline]] static lanes_in_double widened(vec<T> v) {
    if constexpr (single)
      return widen(v);
    else
      return v;
  }

  lanes_in_double total_;
};

/// The sum of many vectors, which come in runs that the caller has added up.
template <class T>
class long_sum {
 public:
  /// `run`: the sum of at most `sum_run` vectors.
  [[gnu::always_inline]] void add(vec<T> run) {
    if (runs_ == sum_block) {
      blocks_ = whole();
      several_ = true;
      block_ = vec<T>(T(0));
      runs_ = 0;
    }
    block_ = block_ + run;
    ++runs_;
  }
  [[gnu::always_inline]] vec<T> by_lanes() const { return several_ ? whole().by_lanes() : block_; }
  [[gnu::always_inline]] T over_lanes() const {
    // To add up 16 lanes in single precision takes four roundings: as many runs less.
    if (!several_ && runs_ <= sum_block - 4) return sum(block_);
    return whole().over_lanes();
  }

 private:
  [[gnu::always_inline]] wide_sum<T> whole() const {
    return several_ ? blocks_ + block_ : wide_sum<T>(block_);
  }

  vec<T> block_ = vec<T>(T(0));
  wide_sum<T> blocks_;  // those before, if there are several
  int runs_ = 0;        // of this block
  bool several_ = false;
};

/// The same of vectors that come one by one.
template <class T>
class vector_sum {
 public:
  [[gnu::always_inline]] void add(vec<T> v) {
    run_ = run_ + v;
    if (--room_ == 0) end_run();
  }
  [[gnu::always_inline]] vec<T> by_lanes() {
    if (!several_) return run_;
    end_run();
    return total_.by_lanes();
  }
  [[gnu::always_inline]] T over_lanes() {
    if (!several_) return sum(run_);
    end_run();
    return total_.over_lanes();
  }

 private:
  [[gnu::always_inline]] void end_run() {
    total_.add(run_);
    run_ = vec<T>(T(0));
    room_ = sum_run;
    several_ = true;
  }

  vec<T> run_ = vec<T>(T(0));
  int room_ = few_vectors;  // vectors until the run ends
  bool several_ = false;
  long_sum<T> total_;
};

}  // namespace cella::cpu
