// expect: foreign_parameter.hpp:16: a parameter [10] is used outside its cell: it is not a member
// expect: of the model that is traced
// expect-lines: 16
#include "cells/foreign_parameter.hpp"

using program = foreign_parameter::program_of<foreign_parameter::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
