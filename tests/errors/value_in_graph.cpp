// expect: TODO
// expect-lines: 14
#include "cells/value_in_graph.hpp"

using program = value_in_graph::program_of<value_in_graph::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
