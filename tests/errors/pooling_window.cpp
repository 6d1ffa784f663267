// expect: TODO
// expect-lines: 14
#include "cells/pooling_window.hpp"

static_assert(pooling_window::program_of<pooling_window::Wrong>::plan.arena_bytes >= 0);
