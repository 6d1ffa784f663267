// expect: TODO
// expect-lines: 14
#include "cells/missing_axis.hpp"

using program = missing_axis::program_of<missing_axis::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
