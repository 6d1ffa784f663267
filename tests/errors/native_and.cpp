// expect: native_and.hpp:13: if: the condition greater result is bool[32,10]; it must be one bool
// expect: (compare with >, equal, ...; any() or all() make one of many; select() and logical_and()
// expect: go element by element)
// expect-lines: 24
#include "language/native_and.hpp"

using program = native_and::program_of<native_and::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
