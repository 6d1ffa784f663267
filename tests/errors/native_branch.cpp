// expect: TODO
// expect-lines: 14
#include "cells/native_branch.hpp"

using program = native_branch::program_of<native_branch::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
