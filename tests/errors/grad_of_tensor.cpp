// expect: TODO
// expect-lines: 14
#include "cells/grad_of_tensor.hpp"

using program = grad_of_tensor::program_of<grad_of_tensor::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
