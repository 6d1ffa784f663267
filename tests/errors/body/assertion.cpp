// expect-gcc: assertion.cpp:18:5: error: call to non-'constexpr' function 'void
// expect-gcc: __assert_fail(const char*, const char*, unsigned int, const char*)'
// expect-clang: assertion.cpp:18:5: note: non-constexpr function '__assert_fail' cannot be
// expect-clang: used in a constant expression
// expect-lines: 90
// An assertion fails.
#include <cassert>
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    assert(x.extent(1) == 11);
    return fc(x);
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
