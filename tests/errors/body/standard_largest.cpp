// expect: std::max_element: vars have no values while they are traced; stack them
// expect-lines: 20
// The largest of vars is asked of the standard library.
#include <algorithm>
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    const auto columns = unstack(fc(x), 1);
    return *std::max_element(columns.begin(), columns.end());
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
