// Division, roots and rounding on AArch64. xsimd 8 has 32-bit ARM's forms of them for single
// precision: estimates that are wrong in the last digits and for zero and large numbers, and a
// rounding that loses the sign of zero. AArch64 has instructions for all. xsimd finds these, since
// they are declared before it is read, and takes them, since they are constrained.
#pragma once

#if defined(__aarch64__)
#include <concepts>
#include <xsimd/types/xsimd_neon64_register.hpp>

namespace xsimd {
template <class T, class A>
class batch;
namespace kernel {

/// Declares `name` of vectors of both types, which is the instruction `f32` or `f64`.
#define CELLA_NEON64_FUNCTION(name, f32, f64)                                \
  template <std::same_as<neon64> A>                                          \
  batch<float, A> name(const batch<float, A>& x, const neon64&) noexcept {   \
    return f32(x);                                                           \
  }                                                                          \
  template <std::same_as<neon64> A>                                          \
  batch<double, A> name(const batch<double, A>& x, const neon64&) noexcept { \
    return f64(x);                                                           \
  }
CELLA_NEON64_FUNCTION(sqrt, vsqrtq_f32, vsqrtq_f64)
CELLA_NEON64_FUNCTION(floor, vrndmq_f32, vrndmq_f64)
CELLA_NEON64_FUNCTION(ceil, vrndpq_f32, vrndpq_f64)
CELLA_NEON64_FUNCTION(trunc, vrndq_f32, vrndq_f64)
CELLA_NEON64_FUNCTION(nearbyint, vrndnq_f32, vrndnq_f64)
#undef CELLA_NEON64_FUNCTION

template <std::same_as<neon64> A>
batch<float, A> div(const batch<float, A>& x, const batch<float, A>& y, const neon64&) noexcept {
  return vdivq_f32(x, y);
}

}  // namespace kernel
}  // namespace xsimd
#endif
