// expect: heads.cpp:13: self_attention: 3 heads do not divide 10 features
// expect-lines: 19
// The heads of an attention do not divide its features.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::self_attention<10, 3> attend;

  constexpr var operator()(var x) const { return attend(reshape(x, {4, 8, 10})); }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
