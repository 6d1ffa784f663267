// expect: TODO
// expect-lines: 14
#include "cells/element_type.hpp"

static_assert(element_type::program_of<element_type::Wrong>::plan.arena_bytes >= 0);
