// expect: TODO
// expect-lines: 14
#include "cells/nested_cell.hpp"

static_assert(nested_cell::program_of<nested_cell::Wrong>::plan.arena_bytes >= 0);
