// expect: slice_bounds.hpp:13: slice: [4, 12) by 1 does not lie within axis 1 of x [32,10]
// expect-lines: 16
#include "cells/slice_bounds.hpp"

using program = slice_bounds::program_of<slice_bounds::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
