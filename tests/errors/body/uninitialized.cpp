// expect-gcc: uninitialized.cpp:17:25: error: the value of 'n' is not usable in a constant
// expect-gcc: expression
// expect-clang: uninitialized.cpp:17:25: note: read of uninitialized object is not allowed
// expect-lines: 80
// A loop counts to a number that was never set.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    int n;
    for (int i = 0; i < n; ++i) x = fc(x);
    return x;
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
