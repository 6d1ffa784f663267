// expect: Net: its members cannot be found: they are private, or there is a constructor or a
// expect: virtual base; write a struct without these, whose members have their values where they
// expect: are declared
// expect-lines: 20
// A cell has a constructor.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;
  int n;

  constexpr Net(int k = 1) : n(k) {}
  constexpr var operator()(var x) const { return fc(x) * n; }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
