// expect-gcc: result_of_one.cpp:22:27: error: no matching function for call to
// expect-gcc: 'cella::compiled<Net, cella::tensor<cella::dtype::f32, 32, 10> >::result<1>()'
// expect-clang: result_of_one.cpp:22:18: error: no matching member function for call to
// expect-clang: 'result'
// expect-lines: 22
// A second result is asked for where there is one.
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
  run(std::vector<float>(320));
  return int(run.result<1>()[0]);
}
