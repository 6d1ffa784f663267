// expect: condition_type.hpp:13: select: the condition y is f32[32]; it must be bool (compare with
// expect: >, ==, ...)
// expect-lines: 16
#include "cells/condition_type.hpp"

using program = condition_type::program_of<condition_type::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
