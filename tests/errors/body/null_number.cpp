// expect-gcc: null_number.cpp:22:49: error: dereferencing a null pointer
// expect-clang: null_number.cpp:17:16: note: read of dereferenced null pointer is not allowed
// expect-clang: in a constant expression
// expect-lines: 84
// A null pointer is read.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    const int* p = nullptr;
    return x * *p;
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
