// expect: no_broadcast.hpp:14: sub: shapes do not broadcast: x is [32,10], mul result is [32]
// expect-lines: 16
#include "cells/no_broadcast.hpp"

using program = no_broadcast::program_of<no_broadcast::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
