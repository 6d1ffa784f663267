// expect: an algorithm of the standard library compares bool[32,10] at once; for std::max and
// expect: std::min write maximum(x, y) and minimum(x, y), which go element by element
// expect-lines: 19
// The largest of a list is asked of the standard library.
#include <algorithm>
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return std::max({x, fc(x)}); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
