// The vector type of this build, its lanes and its registers.
#pragma once

#include <cella/backend/cpu/plan/vector_unit.hpp>
#include <cella/backend/cpu/simd/instruction_sets.hpp>
#include <cella/backend/cpu/simd/intrinsics.hpp>
#include <concepts>

namespace cella::cpu {

/// Vector of the best instruction set of this build. Functions that exist for one element type only
/// are templates as well: what a program does not use is read, but not instantiated with all that
/// it calls.
template <class T>
using vec = xsimd::batch<T>;

namespace detail {
/// A vector of the compiler's own, for shuffles, products and widths that the SIMD library has not.
template <class T, int Lanes>
struct compiler_vector {
  typedef T type __attribute__((vector_size(sizeof(T) * Lanes)));
};
}  // namespace detail

// Plans count on as many lanes as kernels have.
static_assert(
    sizeof(vec<float>) == register_bytes && sizeof(vec<double>) == register_bytes,
    "xsimd and backend/cpu/plan/vector_unit.hpp disagree on the vectors of this instruction set");

/// Elements of a `vec<T>`; at most 16, so that one bit per lane fits `std::uint16_t`.
template <class T>
inline constexpr int lanes = static_cast<int>(vec<T>::size);

/// Vector registers of the instruction set: kernels choose their register tiles by it.
inline constexpr int vector_registers = vector_registers_of(register_bytes);

/// With 16 registers g++ folds loads into products that share them (`in_register`); with 32 it
/// seldom does.
inline constexpr bool few_vector_registers = vector_registers < 32;

/// The lowest n bits, n <= 16.
constexpr unsigned first_bits(int n) { return (1u << n) - 1u; }

}  // namespace cella::cpu
