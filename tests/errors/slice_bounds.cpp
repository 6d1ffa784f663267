// expect: TODO
// expect-lines: 14
#include "cells/slice_bounds.hpp"

using program = slice_bounds::program_of<slice_bounds::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
