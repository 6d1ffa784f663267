// expect: TODO
// expect-lines: 14
#include "cells/element_type.hpp"

using program = element_type::program_of<element_type::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
