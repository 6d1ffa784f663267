// What plans are made for is what kernels have, whatever the instruction set.
#include <doctest/doctest.h>

#if defined(__GNUC__) && !defined(__clang__)
// g++ 12 warns of its own AVX-512 intrinsics when xsimd uses them.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <cella/backend/cpu/plan/planning.hpp>
#include <cella/backend/cpu/simd/simd.hpp>

namespace {

using namespace cella;

template <dtype Element>
constexpr bool agree = lanes_of<Element>() == cpu::lanes<element<Element>>;
static_assert(agree<dtype::f32> && agree<dtype::f64> && agree<dtype::i32> && agree<dtype::i64>);
static_assert(sizeof(cpu::vec<float>) == register_bytes);
static_assert(cpu::planning::machine.lanes(dtype::f32) == cpu::lanes<float>);
static_assert(convolution_shape{}.lanes == cpu::lanes<float>);
static_assert(cpu::vector_registers == vector_registers_of(register_bytes));

#if defined(__AVX512F__)
static_assert(register_bytes == 64 && cpu::vector_registers == 32);
#elif defined(__x86_64__) && defined(__AVX__)
static_assert(register_bytes == 32 && cpu::vector_registers == 16);
#elif defined(__x86_64__)
static_assert(register_bytes == 16 && cpu::vector_registers == 16);
#endif

}  // namespace

TEST_CASE("plans are made for the vectors of the kernels") {
  CHECK(cpu::planning::machine.vector_bytes == int(sizeof(cpu::vec<float>)));
}
