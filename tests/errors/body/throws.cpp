// expect-gcc: throws.cpp:16:28: error: expression '<throw-expression>' is not a constant expression
// expect-clang: throws.cpp:16:28: note: subexpression not valid in a constant expression
// expect-lines: 80
// The call operator throws.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <stdexcept>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    if (x.extent(1) != 11) throw std::runtime_error("wrong");
    return fc(x);
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
