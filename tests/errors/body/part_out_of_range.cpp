// expect: part_out_of_range.cpp:16: unstack: part 10 is read, but there are 10, which count from 0
// expect-lines: 24
// A part is read behind the last one.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    var y = fc(x);
    // The last one:
    return unstack(y, 1)[10];
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
