// expect-gcc: unique_layer.cpp:18:52: error: call to non-'constexpr' function 'typename
// expect-gcc: std::add_lvalue_reference<_Tp>::type std::unique_ptr<_Tp, _Dp>::operator*()
// expect-gcc: const
// expect-clang: unique_layer.cpp:22:14: error: call to deleted function 'compile'
// expect-lines: 29
// expect-errors: 2
// A layer is owned by a pointer.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <memory>
#include <vector>

using namespace cella;

struct Net {
  std::unique_ptr<nn::dense<10, 10>> fc = std::make_unique<nn::dense<10, 10>>();

  constexpr var operator()(var x) const { return (*fc)(x); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
