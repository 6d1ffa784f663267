// expect: native_branch.hpp:15: reading a value at compile time: greater result bool[] has no
// expect: value while the model is traced; branch with cond() or run in eager mode
// expect-lines: 16
#include "cells/native_branch.hpp"

using program = native_branch::program_of<native_branch::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
