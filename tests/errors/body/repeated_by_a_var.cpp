// expect: how often is an int that is known before anything runs; where the data say it,
// expect: write while_loop
// expect-lines: 40
// A loop runs as often as a tensor says.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>

using namespace cella;

struct Net {
  constexpr var operator()(var x, var y) const {
    return for_i(
        y, [](var, var s) { return s + 1; }, x);
  }
};
int main() {
  auto run = compile<tensor<dtype::f32, 8>, tensor<dtype::i32>>(Net{});
  run(std::vector<float>(8), std::array<int, 1>{3});
}
