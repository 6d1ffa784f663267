// expect: TODO
// expect-lines: 14
#include "cells/embedding_index.hpp"

static_assert(embedding_index::program_of<embedding_index::Wrong>::plan.arena_bytes >= 0);
