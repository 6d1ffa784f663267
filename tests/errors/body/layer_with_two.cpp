// expect-gcc: layer_with_two.cpp:17:52: error: no match for call to '(const
// expect-gcc: cella::nn::dense<10, 10>) (cella::var&, cella::var&)'
// expect-clang: layer_with_two.cpp:17:50: error: no matching function for call to object of
// expect-clang: type 'const nn::dense<10, 10>'
// expect-lines: 40
// expect-errors: 2
// A layer is called with two vars.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x, x); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
