// expect: TODO
// expect-lines: 14
#include "cells/dropout_rate.hpp"

static_assert(dropout_rate::program_of<dropout_rate::Wrong>::plan.arena_bytes >= 0);
