// expect: gradients are functions: write grad(f)(x), or optim::apply(rule, loss) in a training step
// expect-lines: 26
// backward is called on a loss.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    sum(fc(x)).backward();
    return x;
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
