// expect: TODO
// expect-lines: 14
#include "cells/norm_channels.hpp"

static_assert(norm_channels::program_of<norm_channels::Wrong>::plan.arena_bytes >= 0);
