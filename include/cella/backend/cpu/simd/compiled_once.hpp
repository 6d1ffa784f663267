// Kernels that know nothing of a program: where `cella::kernels` is linked, its object has them,
// and programs only call them. A quarter of what a small net compiles, a tenth of a large one.
#pragma once

#include <cella/backend/cpu/plan/vector_unit.hpp>

// CELLA_COMPILED_ONCE(permute<float>); stands behind the template of such a kernel, which is no
// inline function, and names what it is compiled for; others are compiled where they are called. A
// program that is compiled for several sets of instructions has its own of all for each.
#if defined(CELLA_COMPILES_KERNELS)
#define CELLA_COMPILED_ONCE(...) template decltype(__VA_ARGS__) __VA_ARGS__
#elif defined(CELLA_KERNELS) && !defined(CELLA_INSTRUCTIONS_ARE_CHOSEN)
#define CELLA_COMPILED_ONCE(...) extern template decltype(__VA_ARGS__) __VA_ARGS__
#else
#define CELLA_COMPILED_ONCE(...) static_assert(true)
#endif
/// The same for both types that programs compute in.
#define CELLA_COMPILED_FOR_FLOATS(kernel) \
  CELLA_COMPILED_ONCE(kernel<float>);     \
  CELLA_COMPILED_ONCE(kernel<double>)

#if defined(CELLA_KERNELS) && !defined(CELLA_INSTRUCTIONS_ARE_CHOSEN)
namespace cella::cpu::detail {

/// In the object of the kernels, for its instructions. Names of kernels do not tell what they are
/// compiled for: a program for other instructions is not linked, instead of computing with layouts
/// that its kernels do not know.
template <int RegisterBytes, bool MultipliesPairs, bool HasMatrixUnit>
struct compiled_kernels {
  static const char for_these_instructions;
};
using kernels_of_build = compiled_kernels<register_bytes, multiplies_pairs, has_matrix_unit>;
#if defined(CELLA_COMPILES_KERNELS)
template <>
const char kernels_of_build::for_these_instructions = 1;
#else
[[gnu::used]] inline const char* const needed_kernels = &kernels_of_build::for_these_instructions;
#endif

}  // namespace cella::cpu::detail
#endif
