// expect: gradient_of_a_number.cpp:15: grad: the function returns double; it has to return a var
// expect-lines: 20
// The function of grad returns a number.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <cella/transform/gradient.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    return grad([](var) { return 3.0; })(x);
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
