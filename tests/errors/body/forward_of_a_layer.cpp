// expect-gcc: forward_of_a_layer.cpp:17:53: error: 'const struct cella::nn::dense<10, 10>' has
// expect-gcc: no member named 'forward'
// expect-clang: forward_of_a_layer.cpp:17:53: error: no member named 'forward' in
// expect-clang: 'cella::nn::dense<10, 10>'
// expect-lines: 30
// expect-errors: 2
// A layer is called by the name forward.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc.forward(x); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
