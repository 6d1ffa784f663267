// expect-gcc: cast_to_a_number.cpp:17:80: error: 'constexpr cella::var::operator float()
// expect-gcc: const' is unavailable: a var is no number here; compute with it, or run in eager
// expect-gcc: mode
// expect-clang: cast_to_a_number.cpp:17:54: error: 'operator float' is unavailable: a var is
// expect-clang: no number here; compute with it, or run in eager mode
// expect-lines: 26
// A var is cast to a number.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return x - static_cast<float>(mean(x)); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
