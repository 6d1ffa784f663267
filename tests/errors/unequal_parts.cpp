// expect: unequal_parts.hpp:13: split: axis 1 of x [32,10] does not divide into 3 equal parts
// expect-lines: 16
#include "cells/unequal_parts.hpp"

using program = unequal_parts::program_of<unequal_parts::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
