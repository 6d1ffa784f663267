// expect-gcc: width_not_constant.cpp:16:22: error: the value of 'width' is not usable in a
// expect-gcc: constant expression
// expect-clang: width_not_constant.cpp:16:17: error: non-type template argument is not a
// expect-clang: constant expression
// expect-lines: 42
// expect-errors: 4
// The width of a layer is no constant.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

int width = 10;
struct Net {
  nn::dense<10, width> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
