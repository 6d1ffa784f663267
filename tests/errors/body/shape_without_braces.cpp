// expect-gcc: shape_without_braces.cpp:17:61: error: could not convert '32' from 'int' to
// expect-gcc: 'cella::shape'
// expect-clang: shape_without_braces.cpp:17:50: error: no matching function for call to
// expect-clang: 'reshape'
// expect-lines: 32
// expect-errors: 2
// A shape is given without braces.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return reshape(x, 32, 10); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
