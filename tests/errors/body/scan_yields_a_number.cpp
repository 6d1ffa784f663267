// expect: scan_yields_a_number.cpp:12: scan: takes a function of the state and a slice,
// expect: then the first state, then what it goes along
// expect-lines: 30
// The body of a scan yields a number.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>

using namespace cella;

struct Net {
  constexpr var operator()(var x, var y) const {
    return scan([](var s, var v) { return std::pair{s + v, 1.f}; }, y, x).first;
  }
};
int main() {
  auto run = compile<tensor<dtype::f32, 8, 4>, tensor<dtype::f32, 4>>(Net{});
  run(std::vector<float>(32), std::vector<float>(4));
}
