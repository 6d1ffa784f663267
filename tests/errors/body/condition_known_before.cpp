// expect: a bool is known before anything runs; write a native if
// expect-lines: 40
// A condition is a bool of the program.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>

using namespace cella;

struct Net {
  constexpr var operator()(var x) const {
    return cond(
        true, [&] { return x; }, [&] { return -x; });
  }
};
int main() {
  auto run = compile<tensor<dtype::f32, 8>>(Net{});
  run(std::vector<float>(8));
}
