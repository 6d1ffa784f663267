// expect: TODO
// expect-lines: 14
#include "cells/reshape.hpp"

static_assert(reshape::program_of<reshape::Wrong>::plan.arena_bytes >= 0);
