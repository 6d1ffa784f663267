// expect: Net: member fc points to a cell or a parameter, but a model owns its cells; make it
// expect: a member itself, or an element of a std::array or std::tuple
// expect-lines: 25
// A layer is optional.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <optional>
#include <vector>

using namespace cella;

struct Net {
  std::optional<nn::dense<10, 10>> fc;

  constexpr var operator()(var x) const { return fc ? (*fc)(x) : x; }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
