// expect: TODO
// expect-lines: 14
#include "cells/permutation.hpp"

using program = permutation::program_of<permutation::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
