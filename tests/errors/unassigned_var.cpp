// expect: unassigned_var.hpp:15: a var is used that was declared and never assigned
// expect-lines: 24
#include "language/unassigned_var.hpp"

using program = unassigned_var::program_of<unassigned_var::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
