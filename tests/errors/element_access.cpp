// expect: write slice(x, axis, first, last) or unstack(x, axis)[i]
// expect-lines: 24
#include "language/element_access.hpp"

using program = element_access::program_of<element_access::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
