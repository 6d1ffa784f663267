// expect-gcc: copied.cpp:21:16: error: use of deleted function 'cella::compiled<F,
// expect-gcc: Arguments>::compiled(const cella::compiled<F, Arguments>&)
// expect-clang: copied.cpp:21:8: error: call to deleted constructor of 'compiled<Net,
// expect-clang: tensor<cella::dtype::f32, 32, 10>>'
// expect-lines: 14
// A compiled function is copied.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  auto other = run;
  other(std::vector<float>(320));
}
