// expect-gcc: integer_overflow.cpp:22:49: error: overflow in constant expression
// expect-clang: integer_overflow.cpp:17:19: note: value 2147483657 is outside the range of
// expect-clang: representable values of type 'int'
// expect-lines: 84
// A sum of integers overflows.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    int n = 2147483647;
    return x * (n + x.extent(1));
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
