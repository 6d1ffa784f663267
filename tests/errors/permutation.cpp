// expect: TODO
// expect-lines: 14
#include "cells/permutation.hpp"

static_assert(permutation::program_of<permutation::Wrong>::plan.arena_bytes >= 0);
