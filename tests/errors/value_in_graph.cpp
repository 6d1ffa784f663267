// expect: value_in_graph.hpp:16: reading a value at compile time: x f32[] has no value while the
// expect: model is traced; branch with cond() or run in eager mode
// expect-lines: 16
#include "cells/value_in_graph.hpp"

using program = value_in_graph::program_of<value_in_graph::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
