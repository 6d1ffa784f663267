#include <cella/backend/cpu/simd/simd.hpp>

extern "C" int lanes_in_use() { return cella::cpu::lanes<float>; }
