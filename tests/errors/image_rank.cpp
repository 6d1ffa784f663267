// expect: image_rank.hpp:15: conv2d: image and filter must have rank 4: x is f32[32,784],
// expect: conv1.weight is f32[6,1,5,5]
// expect-lines: 16
#include "cells/image_rank.hpp"

using program = image_rank::program_of<image_rank::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
