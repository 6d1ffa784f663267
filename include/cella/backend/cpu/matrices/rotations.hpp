// Rotations of neighbouring rows in double precision: kept until there are many, then applied to
// strips of columns that stay in a cache.
#pragma once

#include <cella/backend/cpu/matrices/lines.hpp>
#include <cstdint>

namespace cella::cpu {

/// Sequences of rotations of rows k and k + 1. Going up a rotation turns rows k + 1 and k and the
/// next one rows k and k - 1; going down k and k + 1, then k + 1 and k + 2.
class rotation_sequences {
 public:
  /// Memory for rotations of matrices of n rows; without memory it counts the bytes.
  template <class Room>
  static constexpr rotation_sequences in(Room& room, int n) {
    rotation_sequences r;
    r.rows_ = n;
    r.most_ = together * (n + 1);
    r.angles_ = room.numbers(std::int64_t{2} * r.most_);
    r.ends_ = room.whole_numbers(2 * most_sequences);
    return r;
  }
  /// Whether another sequence needs room.
  constexpr bool is_full() const { return sequences_ == most_sequences || used_ + rows_ > most_; }

  /// Begins one whose first rotation is of rows k and k + 1.
  void begin(int k) {
    ends_[2 * sequences_] = k;
    ends_[2 * sequences_ + 1] = 0;
    ++sequences_;
  }
  /// row k = cosine row k - sine row (k + 1), row k + 1 = sine row k + cosine row (k + 1).
  void add(double cosine, double sine) {
    angles_[2 * used_] = cosine;
    angles_[2 * used_ + 1] = sine;
    ++used_;
    ++ends_[2 * sequences_ - 1];
  }
  /// Applies them in their order to rows of n elements, and forgets them.
  template <bool Up>
  void apply(int n, written_part rows) {
    constexpr int strip = 2 * lanes<double>;
    int j = 0;
    for (; j + strip <= n; j += strip) apply_to_strip<Up, 2>(rows.from(0, j), strip);
    for (; j < n; j += lanes<double>)
      apply_to_strip<Up, 1>(rows.from(0, j), std::min(lanes<double>, n - j));
    used_ = sequences_ = 0;
  }

 private:
  static constexpr int together = 24, most_sequences = 256;

  template <bool Up, int Vectors>
  [[gnu::noinline]] void apply_to_strip(written_part rows, int count) const {
    if (Vectors == 1 && count < lanes<double>)
      apply_to_vectors<Up, Vectors, false>(rows, count);
    else
      apply_to_vectors<Up, Vectors, true>(rows, count);
  }
  template <bool Up, int Vectors, bool Whole>
  void apply_to_vectors(written_part rows, int count) const {
    constexpr int L = lanes<double>;
    constexpr std::bool_constant<Whole> whole{};
    const double* angle = angles_;
    for (int s = 0; s < sequences_; ++s) {
      const int k = ends_[2 * s], length = ends_[2 * s + 1];
      const std::int64_t step = Up ? -rows.row : rows.row;
      double* at = &rows(Up ? k + 1 : k, 0);
      vec<double> own[Vectors];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) own[v] = detail::load_of_line(whole, at + v * L, count);
      for (int i = 0; i < length; ++i, angle += 2) {
        const vec<double> c(angle[0]), s_up(Up ? angle[1] : -angle[1]);
        double* const next = at + step;
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) {
          const vec<double> other = detail::load_of_line(whole, next + v * L, count);
          detail::store_in_line(whole, at + v * L, count, multiply_add(s_up, other, c * own[v]));
          own[v] = multiply_add(-s_up, own[v], c * other);
        }
        at = next;
      }
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) detail::store_in_line(whole, at + v * L, count, own[v]);
    }
  }

  int rows_{}, most_{}, used_{}, sequences_{};
  double* angles_{};
  int* ends_{};
};

}  // namespace cella::cpu
