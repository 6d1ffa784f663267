// expect: large_filter.hpp:20: conv2d: the filter is larger than the padded image: max_pool result
// expect: is f32[8,4,4,4], conv2.weight is f32[8,4,5,5]
// expect-lines: 16
#include "cells/large_filter.hpp"

using program = large_filter::program_of<large_filter::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
