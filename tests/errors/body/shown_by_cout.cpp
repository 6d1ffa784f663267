// expect: a var has no value while it is traced; write x = print(x, "x")
// expect-lines: 20
// A var is written to a stream.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <iostream>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    std::cout << x;
    return x;
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
