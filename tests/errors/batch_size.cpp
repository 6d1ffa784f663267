// expect: TODO
// expect-lines: 14
#include "cells/batch_size.hpp"

static_assert(batch_size::program_of<batch_size::Wrong>::plan.arena_bytes >= 0);
