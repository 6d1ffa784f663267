// expect: TODO
// expect-lines: 14
#include "cells/dropout_rate.hpp"

using program = dropout_rate::program_of<dropout_rate::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
