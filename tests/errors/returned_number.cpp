// expect: returned_number::Wrong: returns double; a cell returns a var, or an array, tuple or
// expect: struct of vars
// expect-lines: 24
#include "language/returned_number.hpp"

using program = returned_number::program_of<returned_number::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
