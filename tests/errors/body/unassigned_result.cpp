// expect: Net: returns a var that was declared and never assigned
// expect-lines: 20
// A var is returned that was never assigned.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    var h;
    if (x.extent(0) == 1) h = x;
    return h;
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
