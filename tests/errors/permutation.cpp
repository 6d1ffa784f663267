// expect: permutation.hpp:13: transpose: the permutation does not name each axis of x [8,16,4]
// expect: once
// expect-lines: 16
#include "cells/permutation.hpp"

using program = permutation::program_of<permutation::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
