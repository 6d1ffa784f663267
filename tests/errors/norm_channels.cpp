// expect: norm_channels.hpp:16: batch_norm: needs 32 channels: add result of conv is [8,16,30,30]
// expect-lines: 16
#include "cells/norm_channels.hpp"

using program = norm_channels::program_of<norm_channels::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
