// expect-gcc: null_layer.cpp:21:49: error: dereferencing a null pointer
// expect-clang: null_layer.cpp:16:12: note: member call on dereferenced null pointer is not allowed
// expect-lines: 80
// A layer is called through a null pointer.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    const nn::dense<10, 10>* p = nullptr;
    return (*p)(x);
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
