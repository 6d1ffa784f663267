// expect: TODO
// expect-lines: 14
#include "cells/label_type.hpp"

using program = label_type::program_of<label_type::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
