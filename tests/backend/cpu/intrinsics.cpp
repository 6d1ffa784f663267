// The library reads the intrinsics of its own instruction set; a program has all of them.
#if defined(__x86_64__)
#include <doctest/doctest.h>

#include <cella/backend/cpu/simd/vector.hpp>
// After the library.
#include <immintrin.h>

namespace {

[[gnu::target("pclmul")]] long long product_without_carries(long long a, long long b) {
  return _mm_cvtsi128_si64(_mm_clmulepi64_si128(_mm_set_epi64x(0, a), _mm_set_epi64x(0, b), 0));
}
[[gnu::target("avx512f")]] double sum_of_eight(const double* x) {
  alignas(64) double y[8];
  _mm512_store_pd(y, _mm512_add_pd(_mm512_loadu_pd(x), _mm512_set1_pd(1)));
  double sum = 0;
  for (double v : y) sum += v;
  return sum;
}

}  // namespace

TEST_CASE(
    "a program that includes all intrinsics after the library has those of other processors") {
  REQUIRE(__builtin_cpu_supports("pclmul"));
  CHECK(product_without_carries(3, 3) == 5);
  CHECK(product_without_carries(7, 5) == 27);
  const double x[] = {1, 2, 3, 4, 5, 6, 7, 8};
  if (__builtin_cpu_supports("avx512f")) CHECK(sum_of_eight(x) == 44);
}
#endif
