// expect: branch_shapes.hpp:19: cond: the result if the condition holds is f32[], the other one
// expect: is f32[3]; both branches must return the same types
// expect-lines: 24
#include "cells/branch_shapes.hpp"

using program = branch_shapes::program_of<branch_shapes::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
