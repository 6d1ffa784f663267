// expect: private_members::Wrong: its members cannot be found: they are private, or there is a
// expect: constructor or a virtual base; write a struct without these
// expect-lines: 24
#include "language/private_members.hpp"

using program = private_members::program_of<private_members::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
