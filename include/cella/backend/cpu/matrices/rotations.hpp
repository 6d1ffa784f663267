// Rotations of neighbouring rows in double precision: kept until there are many, then applied to
// strips of columns that stay in a cache.
#pragma once

#include <cella/backend/cpu/matrices/lines.hpp>
#include <cmath>
#include <cstdint>

namespace cella::cpu {

/// The length of (f, g), and 1 / length.
struct plane_length {
  double length, inverse;

  plane_length(double f, double g) {
    const double square = f * f + g * g;
    // The division need not wait for the root.
    const bool fits = square > 1e-280;
    length = fits ? std::sqrt(square) : std::hypot(f, g);
    inverse = fits ? length * (1 / square) : 1 / length;
  }
};

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
    using line = vec<double>[Vectors];
    const auto read = [&](const double* at, line& y) __attribute__((always_inline)) {
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) y[v] = detail::load_of_line(whole, at + v * L, count);
    };
    const auto write = [&](double* at, const line& x) __attribute__((always_inline)) {
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) detail::store_in_line(whole, at + v * L, count, x[v]);
    };
    // The row that a rotation is done with, and in `own` the one that it passes on.
    const auto turn = [](const double* angle, line& own, const line& other, line& done)
        __attribute__((always_inline)) {
      const vec<double> c(angle[0]), s(Up ? angle[1] : -angle[1]);
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) {
        const vec<double> passed = multiply_add(-s, own[v], c * other[v]);
        done[v] = multiply_add(s, other[v], c * own[v]);
        own[v] = passed;
      }
    };
    const std::int64_t step = Up ? -rows.row : rows.row;
    const double* angle = angles_;
    for (int s = 0; s < sequences_; ++s) {
      const int k = ends_[2 * s];
      int length = ends_[2 * s + 1], i = 0;
      double* at = &rows(Up ? k + 1 : k, 0);
      line own, other, done;
      read(at, own);
      // Two sequences with one beginning go together, the second one a row behind.
      if (s + 1 < sequences_ && ends_[2 * s + 2] == k && length > 0 && ends_[2 * s + 3] > 0) {
        const double* next_angle = angle + 2 * length;
        const int next_length = ends_[2 * s + 3], both = std::min(length, next_length + 1);
        const double* const end = next_angle + 2 * next_length;
        line behind, between;
        read(at + step, other);
        turn(angle, own, other, behind);
        angle += 2;
        for (i = 1; i < both; ++i, angle += 2, next_angle += 2, at += step) {
          read(at + 2 * step, other);
          turn(angle, own, other, between);
          turn(next_angle, behind, between, done);
          write(at, done);
        }
        if (length > next_length) {
          write(at, behind);
          at += step;
          for (; i < length; ++i, angle += 2, at += step) {
            read(at + step, other);
            turn(angle, own, other, done);
            write(at, done);
          }
        } else {
          turn(next_angle, behind, own, done);
          next_angle += 2;
          write(at, done);
          at += step;
          for (; i < next_length; ++i, next_angle += 2, at += step) {
            read(at + step, other);
            turn(next_angle, behind, other, done);
            write(at, done);
          }
          std::copy_n(behind, Vectors, own);
        }
        write(at, own);
        angle = end;
        ++s;
        continue;
      }
      for (; i < length; ++i, angle += 2, at += step) {
        read(at + step, other);
        turn(angle, own, other, done);
        write(at, done);
      }
      write(at, own);
    }
  }

  int rows_{}, most_{}, used_{}, sequences_{};
  double* angles_{};
  int* ends_{};
};

}  // namespace cella::cpu
