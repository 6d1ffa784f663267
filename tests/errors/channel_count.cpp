// expect: TODO
// expect-lines: 14
#include "cells/channel_count.hpp"

constexpr auto& graph = channel_count::program_of<channel_count::Wrong>::graph;
static_assert(graph.type(graph.region_outputs(0)[0]).bytes() > 0);
