// expect: TODO
// expect-lines: 14
#include "cells/image_rank.hpp"

using program = image_rank::program_of<image_rank::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
