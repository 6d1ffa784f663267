// expect: direction: an opaque operation needs vjp; if its derivative is zero, derive it from
// expect: zero_derivative, and if it has none from not_differentiable
// expect-lines: 64
// expect-errors: 2
#include "operations/misspelled_vjp.hpp"

using program = misspelled_vjp::program_of<misspelled_vjp::wrong_direction_op>;
static_assert(program::plan.arena_bytes >= 0);
