// expect: TODO
// expect-lines: 14
#include "cells/embedding_index.hpp"

using program = embedding_index::program_of<embedding_index::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
