// expect-gcc: call to non-'constexpr' function 'void std::__throw_out_of_range_fmt(const char*,
// expect-gcc: ...)'
// expect-clang: layer_out_of_range.cpp:22:14: error: call to consteval function
// expect-clang: 'cella::compile<cella::tensor<cella::dtype::f32, 32, 10>, Net>' is not a constant
// expect-clang: expression
// expect-lines: 77
// expect-place: library
// A layer is asked for that an array lacks.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  std::array<nn::dense<10, 10>, 2> layers;

  constexpr var operator()(var x) const { return layers.at(2)(x); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
