// expect: TODO
// expect-lines: 14
#include "cells/value_in_graph.hpp"

static_assert(value_in_graph::program_of<value_in_graph::Wrong>::plan.arena_bytes >= 0);
