// expect-gcc: never_freed.cpp:17:23: error: 'cella::compile<tensor<cella::dtype::f32, 32, 10>,
// expect-gcc: Net>(Net{cella::nn::dense<10, 10>{cella::parameter<10,
// expect-gcc: 10>(cella::initializer::fan_in_uniform(10, (double)1),
// expect-clang: never_freed.cpp:17:14: note: allocation performed here was not deallocated
// expect-lines: 13
// Memory is never freed.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    int* p = new int(3);
    return x * *p;
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
