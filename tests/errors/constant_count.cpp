// expect: constant_count.hpp:14: constant: 2 values do not fit [3,1,1] (3 elements)
// expect-lines: 16
#include "cells/constant_count.hpp"

using program = constant_count::program_of<constant_count::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
