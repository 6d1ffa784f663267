// expect: TODO
// expect-lines: 14
#include "cells/integer_literal.hpp"

using program = integer_literal::program_of<integer_literal::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
