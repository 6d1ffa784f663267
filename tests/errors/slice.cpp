// expect: TODO
// expect-lines: 14
#include "cells/slice.hpp"

static_assert(slice::program_of<slice::Wrong>::plan.arena_bytes >= 0);
