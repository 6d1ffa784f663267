// expect-gcc: misspelled_layer.cpp:15:7: error: 'desne' in namespace 'cella::nn' does not name a
// expect-gcc: template type; did you mean 'dense'?
// expect-clang: misspelled_layer.cpp:15:7: error: no template named 'desne' in namespace
// expect-clang: 'cella::nn'
// expect-lines: 30
// expect-errors: 3
// A layer is misspelled.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::desne<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
