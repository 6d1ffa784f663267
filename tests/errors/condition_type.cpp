// expect: TODO
// expect-lines: 14
#include "cells/condition_type.hpp"

static_assert(condition_type::program_of<condition_type::Wrong>::plan.arena_bytes >= 0);
