// expect: TODO
// expect-lines: 14
#include "cells/foreign_parameter.hpp"

static_assert(foreign_parameter::program_of<foreign_parameter::Wrong>::plan.arena_bytes >= 0);
