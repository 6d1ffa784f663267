// expect: nested_cell.hpp:17: matmul: inner dimensions differ: relu result is [32,32],
// expect: first.wide.weight is [64,64] transposed
// expect-lines: 16
#include "cells/nested_cell.hpp"

using program = nested_cell::program_of<nested_cell::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
