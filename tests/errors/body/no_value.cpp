// expect-gcc: call to non-'constexpr' function 'void std::__throw_bad_optional_access()'
// expect-clang: no_value.cpp:25:14: error: call to consteval function
// expect-clang: 'cella::compile<cella::tensor<cella::dtype::f32, 32, 10>, Net>' is not a constant
// expect-clang: expression
// expect-lines: 77
// expect-place: library
// An empty optional is asked for its value.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <optional>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    std::optional<int> k;
    return slice(x, 1, 0, k.value());
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
