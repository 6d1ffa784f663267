// expect-gcc: static_variable.cpp:19:16: error: 'calls' defined 'static' in 'constexpr'
// expect-gcc: function only available with '-std=c++2b' or '-std=gnu++2b'
// expect-clang: static_variable.cpp:18:17: fatal error: constexpr function never produces a
// expect-clang: constant expression [-Winvalid-constexpr]
// expect-lines: 37
// expect-errors: 2
// expect-place: library
// A static variable counts the calls.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    static int calls = 0;
    ++calls;
    return x * calls;
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
