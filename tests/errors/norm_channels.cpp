// expect: TODO
// expect-lines: 14
#include "cells/norm_channels.hpp"

using program = norm_channels::program_of<norm_channels::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
