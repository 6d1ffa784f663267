// expect: array_member::Wrong: an array is a member; write std::array<T, N> for T[N]
// expect-lines: 24
#include "language/array_member.hpp"

using program = array_member::program_of<array_member::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
