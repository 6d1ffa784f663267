// expect-gcc: assigned_to_a_float.cpp:18:19: error: cannot convert 'cella::var' to 'float' in
// expect-gcc: initialization
// expect-clang: assigned_to_a_float.cpp:18:11: error: no viable conversion from 'var' to
// expect-clang: 'float'
// expect-lines: 16
// expect-errors: 2
// A var is assigned to a number.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    float m = mean(x);
    return x - m;
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
