// expect: pointer_member::Wrong: member fc points to a cell or a parameter, but a model owns its
// expect: cells; make it a member itself, or an element of a std::array or std::tuple
// expect-lines: 24
#include "language/pointer_member.hpp"

using program = pointer_member::program_of<pointer_member::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
