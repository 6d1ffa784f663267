// expect: TODO
// expect-lines: 14
#include "cells/joined_extents.hpp"

using program = joined_extents::program_of<joined_extents::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
