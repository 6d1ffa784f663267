// expect-gcc: vector_out_of_range.cpp:22:49: error: array subscript value '10' is outside the
// expect-gcc: bounds of array
// expect-clang: cannot refer to element 10 of array of 2 elements
// expect-lines: 76
// A vector is read behind its end.
#include <cella/nn.hpp>
#include <cella/runtime/compile.hpp>
#include <vector>

using namespace cella;

struct Net {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const {
    const std::vector<int> a{1, 2};
    return x * a[std::size_t(x.extent(1))];
  }
};

int main() {
  auto run = compile<tensor<dtype::f32, 32, 10>>(Net{});
  return int(run(std::vector<float>(320))[0]);
}
