// expect: many_members::Wrong: a cell has at most 32 members; group some into a cell of their own,
// expect: or into a std::array
// expect-lines: 24
#include "language/many_members.hpp"

using program = many_members::program_of<many_members::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
