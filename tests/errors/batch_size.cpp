// expect: batch_size.hpp:16: softmax_cross_entropy: batch sizes differ: concat result is
// expect: f32[64,10], y is i32[32]
// expect-lines: 16
#include "cells/batch_size.hpp"

using program = batch_size::program_of<batch_size::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
