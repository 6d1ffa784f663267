// expect: TODO
// expect-lines: 14
#include "cells/convolution_groups.hpp"

using program = convolution_groups::program_of<convolution_groups::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
