// expect: scan_of_one.cpp:15: scan: takes a function of the state and a slice, then the first state,
// expect: then what it goes along: scan([](var s, var x) { return std::pair{s + x, s}; }, s, xs)
// expect-lines: 19
// The body of a scan takes no slice.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    return scan([](var s) { return s; }, x, x).second;
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
