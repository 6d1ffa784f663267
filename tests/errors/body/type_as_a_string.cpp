// expect-gcc: type_as_a_string.cpp:16:58: error: cannot convert 'const char*' to
// expect-gcc: 'cella::dtype'
// expect-clang: type_as_a_string.cpp:16:50: error: no matching function for call to 'cast'
// expect-lines: 43
// expect-errors: 2
// An element type is given as a string.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return cast(x, "float64"); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
