// expect: TODO
// expect-lines: 14
#include "cells/state_shape.hpp"

using program = state_shape::program_of<state_shape::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
