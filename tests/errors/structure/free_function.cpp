// expect: is no cell; write a lambda, [](var x) { ... }, or a struct with a call operator
// expect-lines: 25
// A free function is compiled.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

constexpr var net(var x) { return x * 2; }

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(net);
  return int(run(std::vector<float>(320))[0]);
}
