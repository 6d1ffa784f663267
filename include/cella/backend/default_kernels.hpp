// The kernels of the back end of programs that name no other.
#pragma once

#include <cella/backend/cpu/run/eager.hpp>
#include <cella/backend/cpu/run/runner.hpp>
#include <cella/backend/default.hpp>
