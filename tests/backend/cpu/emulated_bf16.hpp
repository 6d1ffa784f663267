// Numbers of bf16 whose products the emulated matrix unit computes, on every machine.
#pragma once

#include <cella/backend/cpu/gemm/pairs.hpp>

namespace cella {

struct emulated_bf16 : bfloat16 {
  using bfloat16::bfloat16;
};
template <>
inline constexpr dtype dtype_of<emulated_bf16> = dtype::bf16;

namespace cpu {

template <>
inline constexpr bool is_half<emulated_bf16> = true;
template <>
inline constexpr int summands_of_word<emulated_bf16> = 2;
template <>
struct unit_of<emulated_bf16> {
  using type = emulated_unit;
};
template <>
struct detail::narrow_lanes<emulated_bf16> : detail::narrow_lanes<bfloat16> {};

}  // namespace cpu

}  // namespace cella
