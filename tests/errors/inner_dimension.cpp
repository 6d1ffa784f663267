// expect: TODO
// expect-lines: 14
#include "cells/inner_dimension.hpp"

static_assert(inner_dimension::program_of<inner_dimension::Wrong>::plan.arena_bytes >= 0);
