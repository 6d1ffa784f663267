// expect-gcc: increment.cpp:18:6: error: 'constexpr
// expect-gcc: cella::detail::no_increment::no_increment(cella::var&)' is unavailable: write x
// expect-gcc: = x + 1 or x = x - 1
// expect-clang: increment.cpp:18:5: error: 'no_increment' is unavailable: write x = x + 1 or x
// expect-clang: = x - 1
// expect-lines: 24
// A var is incremented.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    x++;
    return x;
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
