// expect: TODO
// expect-lines: 14
#include "cells/state_shape.hpp"

static_assert(state_shape::program_of<state_shape::Wrong>::plan.arena_bytes >= 0);
