// The vector registers of the instruction set that is compiled for. Plans, cost models and kernels
// all take their lanes and tiles from here; backend/cpu/simd/simd.hpp holds the vector type to it.
#pragma once

#include <cella/graph/dtype.hpp>

namespace cella {

/// Bytes of a vector register.
#if defined(__AVX512F__)
inline constexpr int register_bytes = 64;
#elif defined(__AVX__)
inline constexpr int register_bytes = 32;
#else
inline constexpr int register_bytes = 16;
#endif

/// Whether pairs of bf16 are multiplied and added by one instruction (simd/pairs.hpp).
#if defined(__AVX512BF16__) && defined(__AVX512F__)
inline constexpr bool multiplies_pairs = true;
#else
inline constexpr bool multiplies_pairs = false;
#endif

/// Whether there is a matrix unit (simd/matrix_unit.hpp), which multiplies tiles of pairs of bf16
/// and of bytes, and what its tiles are.
#if defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__AMX_INT8__)
inline constexpr bool has_matrix_unit = multiplies_pairs;
#else
inline constexpr bool has_matrix_unit = false;
#endif
inline constexpr int unit_tiles = 8, unit_rows = 16, unit_words = 16;

/// How many vector registers there are if they have so many bytes.
constexpr int vector_registers_of([[maybe_unused]] int bytes) {
#if defined(__aarch64__)
  return 32;
#else
  return bytes == 64 ? 32 : 16;
#endif
}

/// Pixels of a register tile of convolutions in blocks of channels: with two blocks they fill most
/// of so many registers.
constexpr int tile_pixels(int registers) { return registers == 32 ? 14 : 6; }

/// Elements of a vector register.
template <dtype Element>
constexpr int lanes_of() {
  return register_bytes / int(size_of(Element));
}

}  // namespace cella
