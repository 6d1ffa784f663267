// expect: Net: takes 1 tensor, but is given 0 tensors
// expect-lines: 25
// compile is told no types.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

int main() {
  auto run = compile(Net{});
  run(std::vector<float>(320));
}
