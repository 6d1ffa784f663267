// A second translation unit, as any real program has.
#include <cella/graph/shape.hpp>

std::int64_t size_of_batch() { return cella::shape{32, 28, 28}.size(); }
