// expect: TODO
// expect-lines: 14
#include "cells/nested_cell.hpp"

using program = nested_cell::program_of<nested_cell::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
