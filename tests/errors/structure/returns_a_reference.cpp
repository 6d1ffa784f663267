// expect: Net: returns a reference, to what may be gone when it is read; leave the & out
// expect-lines: 22
// A call operator returns a reference.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr const var& operator()(var x) const {
    x = fc(x);
    return x;
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
