// expect: TODO
// expect-lines: 14
#include "cells/training_step.hpp"

static_assert(training_step::program_of<training_step::Wrong>::plan.arena_bytes >= 0);
