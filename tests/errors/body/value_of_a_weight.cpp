// expect: value_of_a_weight.cpp:15: reading a value at compile time: add result of fc
// expect: f32[32,10] has no value while the model is traced; branch with cond() or run in
// expect: eager mode
// expect-lines: 25
// The value of one element is asked for.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return x * fc(x).item(); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
