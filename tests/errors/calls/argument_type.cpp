// expect: the elements of argument 1 (x) are double, but the program's is f32[32,10], of float;
// expect: convert them
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
