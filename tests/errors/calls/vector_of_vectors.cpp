// expect-gcc: vector_of_vectors.cpp:21:6: error: use of deleted function 'std::span<const
// expect-gcc: float> cella::compiled<F, Arguments>::operator()(const A& ...)
// expect-clang: vector_of_vectors.cpp:21:3: error: no matching function for call to object of
// expect-clang: type 'compiled<Net, tensor<cella::dtype::f32, 32, 10>>'
// expect-lines: 16
// A compiled function is called with a vector of vectors.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  run(std::vector<std::vector<float>>(32, std::vector<float>(10)));
}
