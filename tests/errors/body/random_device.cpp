// expect-gcc: random_device.cpp:21:24: error: variable 'random' of non-literal type
// expect-gcc: 'std::random_device' in 'constexpr' function only available with '-std=c++2b' or
// expect-gcc: '-std=gnu++2b'
// expect-clang: random_device.cpp:21:24: error: variable of non-literal type
// expect-clang: 'std::random_device' cannot be defined in a constexpr function before C++23
// expect-lines: 43
// expect-errors: 2
// expect-place: library
// Random numbers come from the standard library.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <random>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    std::random_device random;
    return x * float(random());
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
