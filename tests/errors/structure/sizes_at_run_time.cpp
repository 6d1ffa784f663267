// expect-gcc: sizes_at_run_time.cpp:15:3: error: invalid use of template-name
// expect-gcc: 'cella::nn::dense' without an argument list
// expect-clang: sizes_at_run_time.cpp:15:3: error: use of class template 'nn::dense' requires
// expect-clang: template arguments; argument deduction not allowed in non-static struct member
// expect-lines: 34
// expect-errors: 3
// A layer is given its sizes as arguments.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense fc{10, 10};

  constexpr var operator()(var x) const { return fc(x); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
