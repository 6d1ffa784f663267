// expect: argument x is f32[-1,10]; extents must not be negative
// expect-lines: 20
// An argument has a negative extent.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

int main() {
  auto run = compile<tensor<dtype::f32, -1, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
