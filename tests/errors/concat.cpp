// expect: TODO
// expect-lines: 14
#include "cells/concat.hpp"

static_assert(concat::program_of<concat::Wrong>::plan.arena_bytes >= 0);
