// expect: the lambda captures something, but the compiler makes each cell anew; hand it over as an
// expect: argument, or write a struct with it as a member
// expect-lines: 20
// A lambda captures a variable.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

int main() {
  int n = 3;
  auto run = compile<tensor<dtype::f32, 32, 10>>([n](var x) { return x * n; });
  return int(run(std::vector<float>(320))[0]);
}
