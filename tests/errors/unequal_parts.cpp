// expect: TODO
// expect-lines: 14
#include "cells/unequal_parts.hpp"

using program = unequal_parts::program_of<unequal_parts::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
