// expect-gcc: argument_type.cpp:21:6: error: no match for call to '(cella::compiled<Net,
// expect-gcc: cella::tensor<cella::dtype::f32, 32, 10> >)
// expect-clang: argument_type.cpp:21:3: error: no matching function for call to object of type
// expect-clang: 'compiled<Net, tensor<cella::dtype::f32, 32, 10>>'
// expect-lines: 20
// A compiled function is called with numbers of another type.
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
  run(std::vector<double>(320));
}
