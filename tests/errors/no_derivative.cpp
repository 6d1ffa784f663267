// expect: no_derivative.hpp:28: sort: is not differentiable by identity result f32[32]; give it a
// expect: derivative with custom_vjp(), or hand it stop_gradient()
// expect-lines: 20
#include "cells/no_derivative.hpp"

using program = no_derivative::program_of<no_derivative::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
