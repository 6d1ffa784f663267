// expect: TODO
// expect-lines: 14
#include "cells/convolution_groups.hpp"

static_assert(convolution_groups::program_of<convolution_groups::Wrong>::plan.arena_bytes >= 0);
