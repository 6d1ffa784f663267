// expect: Net: member 1 has no value; give members their values where they are declared (a
// expect: reference can be none)
// expect-lines: 8
// A cell refers to something else.
#include <cella/nn.hpp>
#include <cella/runtime/executable.hpp>

using namespace cella;

struct Net {
  const int& n;

  constexpr var operator()(var x) const { return x * n; }
};

using Program = inference_program<Net, tensor<dtype::f32, 32, 10>>;
static_assert(Program::plan.arena_bytes > 0);
