// expect: TODO
// expect-lines: 14
#include "cells/element_count.hpp"

using program = element_count::program_of<element_count::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
