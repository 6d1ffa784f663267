// expect: TODO
// expect-lines: 14
#include "cells/channel_count.hpp"

static_assert(channel_count::program_of<channel_count::Wrong>::plan.arena_bytes >= 0);
