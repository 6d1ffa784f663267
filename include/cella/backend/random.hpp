// Random numbers in bulk, for memory that the host fills: the same ones as `generator` draws one by
// one.
#pragma once

#include <cella/backend/cpu/simd/random_numbers.hpp>

namespace cella {

using cpu::for_normal;
using cpu::for_uniform;

}  // namespace cella
