// expect: TODO
// expect-lines: 14
#include "cells/large_filter.hpp"

using program = large_filter::program_of<large_filter::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
