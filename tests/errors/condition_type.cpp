// expect: TODO
// expect-lines: 14
#include "cells/condition_type.hpp"

using program = condition_type::program_of<condition_type::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
