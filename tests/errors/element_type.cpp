// expect: element_type.hpp:14: mul: element types differ: x is f32[32], y is i32[32]; convert one
// expect: with cast()
// expect-lines: 16
#include "cells/element_type.hpp"

using program = element_type::program_of<element_type::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
