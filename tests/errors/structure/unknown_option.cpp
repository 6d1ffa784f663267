// expect-gcc: unknown_option.cpp:15:36: error: 'cella::nn::conv2d<1, 8, 5>' has no non-static
// expect-gcc: data member named 'pad'
// expect-clang: unknown_option.cpp:15:29: error: field designator 'pad' does not refer to any
// expect-clang: field in type 'nn::conv2d<1, 8, 5>'
// expect-lines: 31
// expect-errors: 3
// An option of a layer is misspelled.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::conv2d<1, 8, 5> conv{.pad = 2};

  constexpr var operator()(var x) const { return conv(x); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
