// expect: Net: returns std::optional<cella::var>; a cell returns a var, or an array, tuple or
// expect: struct of vars
// expect-lines: 25
// A call operator returns an optional var.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <optional>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr std::optional<var> operator()(var x) const { return x; }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
