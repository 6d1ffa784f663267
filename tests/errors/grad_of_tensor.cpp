// expect: TODO
// expect-lines: 14
#include "cells/grad_of_tensor.hpp"

static_assert(grad_of_tensor::program_of<grad_of_tensor::Wrong>::plan.arena_bytes >= 0);
