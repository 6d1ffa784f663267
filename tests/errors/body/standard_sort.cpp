// expect: std::sort: vars have no values while they are traced; stack them, and write
// expect: sort(stack(x, 0), 0)
// expect-lines: 20
// Vars are sorted by the standard library.
#include <algorithm>
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    auto columns = unstack(x, 1);
    std::sort(columns.begin(), columns.end());
    return columns[0];
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
