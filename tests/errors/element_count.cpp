// expect: element_count.hpp:14: reshape: x is [32,6,14,14] (37632 elements), which does not fit
// expect: [32,256] (8192)
// expect-lines: 16
#include "cells/element_count.hpp"

using program = element_count::program_of<element_count::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
