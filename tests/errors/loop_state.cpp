// expect: loop_state.hpp:16: scan: the state is f32[2,3], what the body makes of it is f32[4,3];
// expect: a loop keeps the types of its state
// expect-lines: 24
#include "cells/loop_state.hpp"

using program = loop_state::program_of<loop_state::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
