// expect: these are several tensors; take one of them: split(x, 2, axis)[0]
// expect-lines: 40
// All parts are taken for one tensor.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>

using namespace cella;

struct Net {
  constexpr var operator()(var x) const {
    const var part = split(x, 2, 0);
    return relu(part);
  }
};
int main() {
  auto run = compile<tensor<dtype::f32, 8>>(Net{});
  run(std::vector<float>(8));
}
