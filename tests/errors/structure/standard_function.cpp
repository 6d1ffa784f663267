// expect-gcc: standard_function.cpp:18:60: error: call to non-'constexpr' function '_Res
// expect-gcc: std::function<_Res(_ArgTypes ...)>::operator()(_ArgTypes ...) const
// expect-clang: standard_function.cpp:22:14: error: call to deleted function 'compile'
// expect-lines: 25
// expect-errors: 2
// A member is a std::function.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <functional>
#include <vector>

using namespace cella;

struct Net {
  std::function<var(var)> activation = [](var x) { return relu(x); };
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return activation(fc(x)); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
