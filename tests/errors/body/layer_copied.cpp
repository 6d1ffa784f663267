// expect: layer_copied.cpp:16: a parameter [10,10] is used outside its cell: it is not a
// expect: member of the model that is traced
// expect-lines: 25
// A layer is copied in the call operator.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    auto copy = fc;
    return copy(x);
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
