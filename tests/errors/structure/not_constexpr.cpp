// expect-gcc: Net: its call operator is not constexpr, so that the compiler cannot trace it; write
// expect-gcc: constexpr in front of it
// expect-clang: note: non-constexpr function 'operator()' cannot be used in a constant expression
// expect-lines: 90
// A call operator is not constexpr.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  var operator()(var x) const { return fc(x); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
