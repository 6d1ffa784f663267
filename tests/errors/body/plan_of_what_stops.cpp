// expect-gcc: 'const struct cella::detail::the_compiler_could_not_run<Net>'} has no member named
// expect-gcc: 'arena_bytes'
// expect-clang: plan_of_what_stops.cpp:20:35: error: no member named 'arena_bytes' in
// expect-clang: 'cella::detail::the_compiler_could_not_run<Net>'
// A plan is read of a cell that the compiler could not run: an executable of it says where it stops.
#include <cella/nn.hpp>
#include <cella/runtime/program.hpp>

using namespace cella;

struct Net {
  std::array<nn::dense<10, 10>, 2> layers;

  constexpr var operator()(var x) const { return layers.at(2)(x); }
};

using net_program = inference_program<Net, tensor<dtype::f32, 32, 10>>;

int main() {
  static_assert(net_program::plan.arena_bytes < 1 << 20);
}
