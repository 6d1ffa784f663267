// expect-gcc: misspelled.cpp:15:50: error: 'rleu' was not declared in this scope
// expect-clang: misspelled.cpp:15:50: error: use of undeclared identifier 'rleu'
// expect-lines: 28
// expect-errors: 2
// An operation is misspelled.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return rleu(fc(x)); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
