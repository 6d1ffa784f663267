// expect: joined_extents.hpp:13: concat: y is f32[32,20] and the first operand is f32[32,10]; they
// expect: may differ along axis 0 only
// expect-lines: 16
#include "cells/joined_extents.hpp"

using program = joined_extents::program_of<joined_extents::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
