// A program that is compiled for AVX2 whatever the machine.
#include <cella/backend/cpu/simd/simd.hpp>
#include <cstdlib>

int main(int argc, char**) {
  const cella::cpu::vec<float> x(static_cast<float>(argc));
  return cella::cpu::sum<float>(cella::cpu::multiply_add<float>(x, x, x)) > 0 ? 0 : EXIT_FAILURE;
}
