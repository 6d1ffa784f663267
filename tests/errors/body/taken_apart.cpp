// expect: a var is one tensor; take parts of it: split(x, 2, axis)[0]
// expect-lines: 20
// A var is taken apart by a structured binding.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    auto [mean, deviation] = fc(x);
    return mean + deviation;
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
