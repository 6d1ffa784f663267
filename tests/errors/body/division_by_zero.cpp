// expect-gcc: division_by_zero.cpp:16:20: error: '(10 / 0)' is not a constant expression
// expect-clang: division_by_zero.cpp:16:20: note: division by zero
// expect-lines: 80
// An integer is divided by zero.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    const int k = x.extent(0) - 32;
    return x * (10 / k);
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
