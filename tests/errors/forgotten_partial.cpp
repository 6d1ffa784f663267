// expect: cube: an elementwise operation needs partial (or vjp); if its derivative is zero, derive
// expect: it from zero_derivative, and if it has none from not_differentiable
// expect-lines: 64
// expect-errors: 2
#include "operations/forgotten_partial.hpp"

using program = forgotten_partial::program_of<forgotten_partial::wrong_cube_op>;
static_assert(program::plan.arena_bytes >= 0);
