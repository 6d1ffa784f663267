// expect: Net: its call operator takes something other than vars; it has to be constexpr var
// expect: operator()(var x) const
// expect-lines: 25
// A call operator takes a pointer.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var* x) const { return fc(*x); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
