// expect: grad_of_tensor.hpp:17: grad: the function returns f32[32,10]; a gradient needs one
// expect: floating-point number (sum or mean it, or use vjp)
// expect-lines: 16
#include "cells/grad_of_tensor.hpp"

using program = grad_of_tensor::program_of<grad_of_tensor::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
