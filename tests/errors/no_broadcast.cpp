// expect: TODO
// expect-lines: 14
#include "cells/no_broadcast.hpp"

using program = no_broadcast::program_of<no_broadcast::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
