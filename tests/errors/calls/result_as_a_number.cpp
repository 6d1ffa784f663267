// expect-gcc: result_as_a_number.cpp:21:16: error: cannot convert 'std::span<const float>' to
// expect-gcc: 'float' in initialization
// expect-clang: result_as_a_number.cpp:21:9: error: no viable conversion from 'std::span<T>'
// expect-clang: (aka 'span<const float>') to 'float'
// expect-lines: 12
// A result of many is taken as a number.
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
  float y = run(std::vector<float>(320));
  return int(y);
}
