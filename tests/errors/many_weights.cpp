// expect: fc.weight has 1e+12 elements, more than 1.71799e+10; if that is meant, let the model say
// expect: static constexpr std::int64_t most_elements
// expect-lines: 24
#include "language/many_weights.hpp"

using program = many_weights::program_of<many_weights::Wrong>;
static_assert(program::plan.arena_bytes >= 0);
