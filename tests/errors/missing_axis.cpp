// expect: missing_axis.hpp:13: sum: x [32,10] has no axis 2
// expect-lines: 16
#include "cells/missing_axis.hpp"

using program = missing_axis::program_of<missing_axis::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
