// expect: Net: a bit-field is a member, to which nothing can refer; leave its width out
// expect-lines: 21
// A member is a bit-field.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;
  bool residual : 1 = true;
  unsigned depth : 3 = 2;

  constexpr var operator()(var x) const { return residual ? x + fc(x) : fc(x); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
