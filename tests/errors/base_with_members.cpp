// expect: base_with_members::Wrong: a cell with a base class has no members besides; make the base
// expect: a member
// expect-lines: 24
#include "language/base_with_members.hpp"

using program = base_with_members::program_of<base_with_members::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
