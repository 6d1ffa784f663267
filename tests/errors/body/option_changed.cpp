// expect-gcc: option_changed.cpp:18:11: error: assignment of member 'Net::scale' in read-only
// expect-gcc: object
// expect-clang: option_changed.cpp:18:11: error: cannot assign to non-static data member
// expect-clang: within const member function 'operator()'
// expect-lines: 16
// expect-errors: 2
// A member is changed in the call operator.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  float scale = 1;

  constexpr var operator()(var x) const {
    scale = 2;
    return x * scale;
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
