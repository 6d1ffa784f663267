// expect: TODO
// expect-lines: 14
#include "cells/pooling_window.hpp"

using program = pooling_window::program_of<pooling_window::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
