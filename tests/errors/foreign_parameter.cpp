// expect: TODO
// expect-lines: 14
#include "cells/foreign_parameter.hpp"

using program = foreign_parameter::program_of<foreign_parameter::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
