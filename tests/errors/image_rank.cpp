// expect: TODO
// expect-lines: 14
#include "cells/image_rank.hpp"

static_assert(image_rank::program_of<image_rank::Wrong>::plan.arena_bytes >= 0);
