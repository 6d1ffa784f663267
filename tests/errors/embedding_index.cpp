// expect: embedding_index.hpp:15: gather: the indices x are f32[8,16]; they must be integers
// expect-lines: 16
#include "cells/embedding_index.hpp"

using program = embedding_index::program_of<embedding_index::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
