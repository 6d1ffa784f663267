// expect: integer_literal.hpp:13: mul: x is i32[32] and the number beside it is not an integer;
// expect: convert the tensor with cast()
// expect-lines: 16
#include "cells/integer_literal.hpp"

using program = integer_literal::program_of<integer_literal::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
