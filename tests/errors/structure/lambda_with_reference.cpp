// expect: the lambda captures something, but the compiler makes each cell anew; hand it over
// expect: as an argument, or write a struct with it as a member
// expect-lines: 25
// A lambda captures a layer by reference.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

int main() {
  nn::dense<10, 10> fc;
  auto run = compile<tensor<dtype::f32, 32, 10>>([&](var x) { return fc(x); });
  return int(run(std::vector<float>(320))[0]);
}
