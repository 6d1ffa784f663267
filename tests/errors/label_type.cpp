// expect: label_type.hpp:14: softmax_cross_entropy: labels must be integers: x is f32[32,10], y is
// expect: f32[32]
// expect-lines: 16
#include "cells/label_type.hpp"

using program = label_type::program_of<label_type::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
