// expect: TODO
// expect-lines: 14
#include "cells/large_filter.hpp"

static_assert(large_filter::program_of<large_filter::Wrong>::plan.arena_bytes >= 0);
