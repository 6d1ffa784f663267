// expect: state_shape.hpp:16: assign: average is f32[10] but the new value is f32[32,10]
// expect-lines: 16
#include "cells/state_shape.hpp"

using program = state_shape::program_of<state_shape::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
