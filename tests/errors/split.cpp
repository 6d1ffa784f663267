// expect: TODO
// expect-lines: 14
#include "cells/split.hpp"

static_assert(split::program_of<split::Wrong>::plan.arena_bytes >= 0);
