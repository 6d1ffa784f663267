// expect: TODO
// expect-lines: 14
#include "cells/integer_literal.hpp"

static_assert(integer_literal::program_of<integer_literal::Wrong>::plan.arena_bytes >= 0);
