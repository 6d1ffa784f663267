// expect: pooling_window.hpp:15: average_pool: the window is larger than the padded image: x is
// expect: [8,4,7,7], window [8,8]
// expect-lines: 16
#include "cells/pooling_window.hpp"

using program = pooling_window::program_of<pooling_window::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
