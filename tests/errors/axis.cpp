// expect: TODO
// expect-lines: 14
#include "cells/axis.hpp"

static_assert(axis::program_of<axis::Wrong>::plan.arena_bytes >= 0);
