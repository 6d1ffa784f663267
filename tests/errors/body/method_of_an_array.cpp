// expect-gcc: method_of_an_array.cpp:16:52: error: 'struct cella::var' has no member named
// expect-gcc: 'sum'
// expect-clang: method_of_an_array.cpp:16:52: error: no member named 'sum' in 'cella::var'
// expect-lines: 30
// expect-errors: 2
// A reduction is called as a method.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return x.sum(); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
