// expect: a var is no range; loop over unstack(x, axis)
// expect-lines: 24
#include "language/range_loop.hpp"

using program = range_loop::program_of<range_loop::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
