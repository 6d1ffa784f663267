// expect: cube: partial is not `var partial(node_ref n, int operand)`
// expect-lines: 64
// expect-errors: 2
#include "operations/rule_signature.hpp"

using program = rule_signature::program_of<rule_signature::wrong_cube_op>;
static_assert(program::plan.arena_bytes >= 0);
