// expect: Net: a cell has no virtual functions; make what varies a template parameter
// expect-lines: 20
// A cell has virtual functions.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Layer {
  virtual constexpr var operator()(var x) const = 0;
};
struct Net : Layer {
  constexpr var operator()(var x) const override { return x; }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
