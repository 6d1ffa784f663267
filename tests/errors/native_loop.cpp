// expect: native_loop.hpp:17: if: a function decides more than 64 times in a row on tensor
// expect: values; use while_loop() for a loop, cond() for a branch
// expect-lines: 24
#include "cells/native_loop.hpp"

using program = native_loop::program_of<native_loop::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
