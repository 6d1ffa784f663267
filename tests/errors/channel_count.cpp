// expect: channel_count.hpp:20: conv2d: channel counts differ: max_pool result is f32[32,6,14,14],
// expect: conv2.weight is f32[16,16,5,5]
// expect-lines: 16
#include "cells/channel_count.hpp"

constexpr auto& graph = channel_count::program_of<channel_count::Wrong>::graph;
static_assert(graph.sizes.nodes > 0);
