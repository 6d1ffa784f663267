// expect: std::accumulate: a sum of vars begins with a number; let it begin with one of them:
// expect: std::accumulate(x.begin() + 1, x.end(), x[0])
// expect-lines: 19
// Vars are added to a number by the standard library.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <numeric>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    const auto columns = unstack(x, 1);
    return std::accumulate(columns.begin(), columns.end(), 0.f);
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
