// expect: TODO
// expect-lines: 14
#include "cells/broadcast.hpp"

static_assert(broadcast::program_of<broadcast::Wrong>::plan.arena_bytes >= 0);
