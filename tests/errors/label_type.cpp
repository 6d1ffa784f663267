// expect: TODO
// expect-lines: 14
#include "cells/label_type.hpp"

static_assert(label_type::program_of<label_type::Wrong>::plan.arena_bytes >= 0);
