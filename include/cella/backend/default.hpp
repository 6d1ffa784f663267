// The back end of programs that name no other.
#pragma once

#include <cella/backend/cpu/backend.hpp>

namespace cella {

using default_backend = cpu::backend;

}  // namespace cella
