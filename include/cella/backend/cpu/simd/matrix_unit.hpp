// The matrix unit of processors with AMX: eight tiles, each of 16 rows of 64 bytes, and products of
// two of them that are added to a third. A row holds 16 words: numbers of single precision, pairs
// of bf16 or groups of four bytes. `amx_unit` is the processor's, `emulated_unit` computes the
// same, bit by bit, anywhere: kernels are templates over the unit, so that their tests run
// everywhere.
#pragma once

#include <array>
#include <cella/backend/cpu/plan/vector_unit.hpp>
#include <cella/backend/cpu/simd/instruction_sets.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace cella::cpu {

/// The processor's own, from construction to destruction, for one thread. The program has asked the
/// operating system for it when it started (instruction_sets.hpp).
class amx_unit {
 public:
  amx_unit() {
    struct alignas(64) {
      std::uint8_t palette = 1, start_row = 0, reserved[14]{};
      std::uint16_t row_bytes[16]{};
      std::uint8_t rows[16]{};
    } shape;
    for (int t = 0; t < unit_tiles; ++t) {
      shape.row_bytes[t] = unit_words * 4;
      shape.rows[t] = unit_rows;
    }
    asm volatile("ldtilecfg %0" ::"m"(shape));
  }
  ~amx_unit() { asm volatile("tilerelease"); }
  amx_unit(const amx_unit&) = delete;
  amx_unit& operator=(const amx_unit&) = delete;

  /// Tile `To` becomes zero.
  template <int To>
  void zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(To));
  }
  /// Reads a tile, whose rows begin `row` bytes apart.
  template <int To>
  void load(const void* from, std::int64_t row) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(row), "i"(To) : "memory");
  }
  template <int From>
  void store(void* to, std::int64_t row) const {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(row), "i"(From) : "memory");
  }
  /// Sum(i, j) += the products of the pairs of bf16 in A(i, k) and B(k, j), over all k. The first
  /// numbers of the pairs are added up for themselves, from zero, and so are the second; denormal
  /// numbers are zero.
  template <int Sum, int A, int B>
  void add_pairs() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sum), "i"(A), "i"(B));
  }
  /// The same of groups of four bytes, u8 in A and s8 in B, with sums of 32 bits.
  template <int Sum, int A, int B>
  void add_bytes() {
    asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sum), "i"(A), "i"(B));
  }
};

/// The same without the instructions, slowly.
class emulated_unit {
 public:
  template <int To>
  void zero() {
    tile_[To] = {};
  }
  template <int To>
  void load(const void* from, std::int64_t row) {
    for (int i = 0; i < unit_rows; ++i)
      std::memcpy(&at<To>(i, 0), static_cast<const std::byte*>(from) + i * row, unit_words * 4);
  }
  template <int From>
  void store(void* to, std::int64_t row) const {
    for (int i = 0; i < unit_rows; ++i)
      std::memcpy(static_cast<std::byte*>(to) + i * row, &at<From>(i, 0), unit_words * 4);
  }
  template <int Sum, int A, int B>
  void add_pairs() {
    for (int i = 0; i < unit_rows; ++i) {
      for (int j = 0; j < unit_words; ++j) {
        float first = 0, second = 0;
        for (int k = 0; k < unit_words; ++k) {
          const std::uint32_t a = at<A>(i, k), b = at<B>(k, j);
          first = flushed(std::fma(number(a << 16), number(b << 16), first));
          second = flushed(std::fma(number(a & upper), number(b & upper), second));
        }
        const float sum = flushed(number(at<Sum>(i, j)) + flushed(first + second));
        std::memcpy(&at<Sum>(i, j), &sum, sizeof sum);
      }
    }
  }
  template <int Sum, int A, int B>
  void add_bytes() {
    for (int i = 0; i < unit_rows; ++i) {
      for (int j = 0; j < unit_words; ++j) {
        for (int k = 0; k < unit_words; ++k) {
          for (int byte = 0; byte < 32; byte += 8) {
            const std::int32_t a = std::uint8_t(at<A>(i, k) >> byte);
            const std::int32_t b = std::int8_t(std::uint8_t(at<B>(k, j) >> byte));
            at<Sum>(i, j) += std::uint32_t(a * b);
          }
        }
      }
    }
  }

 private:
  static constexpr std::uint32_t upper = 0xffff0000u;
  static float flushed(float x) {
    return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.f, x) : x;
  }
  static float number(std::uint32_t bits) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return flushed(x);
  }
  template <int Tile>
  std::uint32_t& at(int row, int word) {
    return tile_[Tile][std::size_t(row)][std::size_t(word)];
  }
  template <int Tile>
  const std::uint32_t& at(int row, int word) const {
    return tile_[Tile][std::size_t(row)][std::size_t(word)];
  }

  std::array<std::array<std::array<std::uint32_t, unit_words>, unit_rows>, unit_tiles> tile_{};
};

/// The unit of this build; void: it has none.
using matrix_unit = std::conditional_t<has_matrix_unit, amx_unit, void>;

/// Down x Across tiles of sums, 2 x 2 at most: (i, j) is the unit's tile 2 i + j. Those of A are
/// read into 4 and 5, those of B into 6 and 7, so that each serves two products. `at` says where a
/// tile lies, whose rows begin so many bytes apart.
template <int Down, int Across, class Unit>
class unit_sums {
 public:
  [[gnu::always_inline]] explicit unit_sums(Unit& unit) : unit_(unit) {}

  [[gnu::always_inline]] void zero() {
    for_each([&]<int I, int J>()
                 __attribute__((always_inline)) { unit_.template zero<2 * I + J>(); });
  }
  /// at(i, j)
  template <class At>
  [[gnu::always_inline]] void load(At at, std::int64_t row) {
    for_each([&]<int I, int J>()
                 __attribute__((always_inline)) { unit_.template load<2 * I + J>(at(I, J), row); });
  }
  template <class At>
  [[gnu::always_inline]] void store(At at, std::int64_t row) const {
    for_each([&]<int I, int J>() __attribute__((always_inline)) {
      unit_.template store<2 * I + J>(at(I, J), row);
    });
  }
  /// Adds the products of a(i) and b(j), of pairs or of bytes.
  template <class A, class B>
  [[gnu::always_inline]] void add_pairs(A a, std::int64_t a_row, B b, std::int64_t b_row) {
    add(
        a, a_row, b, b_row, [&]<int Sum, int X, int Y>() __attribute__((always_inline)) {
          unit_.template add_pairs<Sum, X, Y>();
        });
  }
  template <class A, class B>
  [[gnu::always_inline]] void add_bytes(A a, std::int64_t a_row, B b, std::int64_t b_row) {
    add(
        a, a_row, b, b_row, [&]<int Sum, int X, int Y>() __attribute__((always_inline)) {
          unit_.template add_bytes<Sum, X, Y>();
        });
  }

 private:
  template <class F>
  [[gnu::always_inline]] static void for_each(F f) {
    f.template operator()<0, 0>();
    if constexpr (Across > 1) f.template operator()<0, 1>();
    if constexpr (Down > 1) f.template operator()<1, 0>();
    if constexpr (Down > 1 && Across > 1) f.template operator()<1, 1>();
  }
  template <class A, class B, class Multiply>
  [[gnu::always_inline]] void add(A a, std::int64_t a_row, B b, std::int64_t b_row,
                                  Multiply multiply) {
    for_each([&]<int I, int J>() __attribute__((always_inline)) {
      if constexpr (J == 0) unit_.template load<4 + I>(a(I), a_row);
      if constexpr (I == 0) unit_.template load<6 + J>(b(J), b_row);
      multiply.template operator()<2 * I + J, 4 + I, 6 + J>();
    });
  }

  Unit& unit_;
};

/// Calls f.operator()<down, across>() for one or two tiles of each.
template <class F>
[[gnu::always_inline]] inline void with_unit_tiles(int down, int across, F f) {
  if (down > 1 && across > 1)
    f.template operator()<2, 2>();
  else if (down > 1)
    f.template operator()<2, 1>();
  else if (across > 1)
    f.template operator()<1, 2>();
  else
    f.template operator()<1, 1>();
}

}  // namespace cella::cpu
