// expect: other_count::Wrong: takes 2 tensors, but is given 1 tensor
// expect-lines: 24
#include "language/other_count.hpp"

using program = other_count::program_of<other_count::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
