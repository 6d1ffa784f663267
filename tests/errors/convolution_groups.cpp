// expect: convolution_groups.hpp:16: conv2d: the groups do not divide the filters: x is
// expect: f32[8,8,16,16], conv.weight is f32[6,2,3,3]
// expect-lines: 16
#include "cells/convolution_groups.hpp"

using program = convolution_groups::program_of<convolution_groups::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
