// expect-gcc: backward.cpp:16:16: error: 'struct cella::var' has no member named 'backward'
// expect-clang: backward.cpp:16:16: error: no member named 'backward' in 'cella::var'
// expect-lines: 13
// expect-errors: 2
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
