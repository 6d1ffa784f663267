// expect: TODO
// expect-lines: 14
#include "cells/native_branch.hpp"

static_assert(native_branch::program_of<native_branch::Wrong>::plan.arena_bytes >= 0);
