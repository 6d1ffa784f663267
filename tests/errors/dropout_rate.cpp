// expect: dropout_rate.hpp:16: dropout: the rate must lie in [0, 1)
// expect-lines: 16
#include "cells/dropout_rate.hpp"

using program = dropout_rate::program_of<dropout_rate::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
